//! Writes HTML.

use std::fmt::Write;

/// An HTML document that grows.
#[derive(Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// Adds `html` as it is.
    pub fn raw(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Adds `text`, escaped.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let mut before = ' ';
        for (at, character) in text.char_indices() {
            match character {
                // A number and its unit stay on one line.
                ' ' if before.is_ascii_digit() && starts_with_unit(&text[at + 1..]) => {
                    self.0.push('\u{a0}');
                }
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                plain => self.0.push(plain),
            }
            before = character;
        }
        self
    }

    /// Adds `<tag>text</tag>`; `tag` may carry attributes.
    pub fn element(&mut self, tag: &str, text: &str) -> &mut Self {
        let name = tag.split(' ').next().unwrap_or(tag);
        self.raw("<").raw(tag).raw(">").text(text).raw("</").raw(name).raw(">")
    }

    /// Adds a table. The first cell of each row names the row. The table scrolls by itself if the
    /// screen is narrow.
    pub fn table(&mut self, columns: &[String], rows: &[Vec<String>]) -> &mut Self {
        self.raw("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
        for column in columns {
            self.element("th scope=\"col\"", column);
        }
        self.raw("</tr></thead><tbody>");
        for row in rows {
            self.raw("<tr>");
            for (index, cell) in row.iter().enumerate() {
                self.element(if index == 0 { "th scope=\"row\"" } else { "td" }, cell);
            }
            self.raw("</tr>");
        }
        self.raw("</tbody></table></div>\n")
    }

    /// Adds formatted text, as it is.
    pub fn line(&mut self, html: std::fmt::Arguments<'_>) -> &mut Self {
        // Writing to a String does not fail.
        let _ = self.0.write_fmt(html);
        self
    }

    /// Returns the document.
    pub fn finish(self) -> String {
        self.0
    }
}

fn starts_with_unit(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_alphabetic() && c != '%').next().unwrap_or_default();
    ["%", "ns", "µs", "ms", "s"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit() {
        let mut markup = Markup::default();
        markup.text("within 1 % of 5.6 µs, 2 seconds, 3 ms; no 4");
        assert_eq!(markup.finish(), "within 1\u{a0}% of 5.6\u{a0}µs, 2 seconds, 3\u{a0}ms; no 4");
    }

    #[test]
    fn escapes() {
        let mut markup = Markup::default();
        markup.element("p class=\"a\"", "1 < 2 & \"3\"");
        assert_eq!(markup.finish(), "<p class=\"a\">1 &lt; 2 &amp; &quot;3&quot;</p>");
    }
}
