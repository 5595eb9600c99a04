//! Text into HTML.

use std::fmt::Write;

/// A document that grows.
#[derive(Debug, Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// Adds `html` as it is.
    pub(crate) fn raw(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Adds `text`, escaped.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                plain => self.0.push(plain),
            }
        }
        self
    }

    /// Adds `<tag>text</tag>`; `tag` may carry attributes.
    pub(crate) fn element(&mut self, tag: &str, text: &str) -> &mut Self {
        let name = tag.split(' ').next().unwrap_or(tag);
        self.raw("<").raw(tag).raw(">").text(text).raw("</").raw(name).raw(">")
    }

    /// Adds a table; the first cell of each row names it. It scrolls by itself where the screen is narrow.
    pub(crate) fn table(&mut self, columns: &[String], rows: &[Vec<String>]) -> &mut Self {
        self.raw("<div class=\"scroll\"><table><thead><tr>");
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
    pub(crate) fn line(&mut self, html: std::fmt::Arguments<'_>) -> &mut Self {
        // Writing to a String does not fail.
        let _ = self.0.write_fmt(html);
        self
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let mut markup = Markup::default();
        markup.element("p class=\"a\"", "1 < 2 & \"3\"");
        assert_eq!(markup.finish(), "<p class=\"a\">1 &lt; 2 &amp; &quot;3&quot;</p>");
    }
}
