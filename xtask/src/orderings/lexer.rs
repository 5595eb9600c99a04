//! Rust source as a row of tokens with their places.
//!
//! Not a parser, and no checker: it has to be right about what is *not* code (comments that nest,
//! raw strings with their hashes, `'a'` against `'a`) and may be naive about the rest.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or keyword, raw or not.
    Word,
    /// One character that is none of the others.
    Mark(char),
    /// A string, character or number.
    Literal,
    /// `'a`.
    Lifetime,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its text.
    pub(crate) text: &'a str,
    /// The byte where it begins.
    pub(crate) begin: usize,
}

impl Token<'_> {
    /// The byte after it.
    pub(crate) fn end(&self) -> usize {
        self.begin + self.text.len()
    }

    /// Returns whether it is the word `word`.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    /// Returns whether it is the character `mark`.
    pub(crate) fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// The tokens of `source`, without comments and white space.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let (length, kind) = if first.is_whitespace() {
            (first.len_utf8(), None)
        } else if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), None)
        } else if rest.starts_with("/*") {
            (block_comment(rest), None)
        } else if let Some(length) = string(rest) {
            (length, Some(Kind::Literal))
        } else if first == '\'' {
            quote(rest)
        } else if first.is_alphabetic() || first == '_' {
            (word(rest), Some(Kind::Word))
        } else if first.is_ascii_digit() {
            (number(rest), Some(Kind::Literal))
        } else {
            (first.len_utf8(), Some(Kind::Mark(first)))
        };
        if let Some(kind) = kind {
            tokens.push(Token { kind, text: &rest[..length], begin: at });
        }
        at += length;
    }
    tokens
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of a string literal at the start of `rest`, if there is one: `""`, `b""`, `c""`,
/// `r""`, `br#""#` and so on.
fn string(rest: &str) -> Option<usize> {
    let prefix =
        rest.find(|c: char| !matches!(c, 'b' | 'c' | 'r')).filter(|&length| length <= 2)?;
    let raw = rest[..prefix].ends_with('r');
    let body = &rest[prefix..];
    if raw {
        let hashes = body.find(|c| c != '#').unwrap_or(0);
        let opened = body[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let inside = opened.find(&close).map_or(opened.len(), |at| at + close.len());
        return Some(prefix + hashes + 1 + inside);
    }
    if prefix == 1 && body.starts_with('\'') && rest.starts_with('b') {
        return Some(prefix + escaped(body, '\''));
    }
    body.starts_with('"').then(|| prefix + escaped(body, '"'))
}

/// The length of a literal that begins and ends with `quote` and may escape it.
fn escaped(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

/// A character literal or a lifetime.
fn quote(rest: &str) -> (usize, Option<Kind>) {
    let mut inside = rest.chars().skip(1);
    let (first, second) = (inside.next(), inside.next());
    if first == Some('\\') || second == Some('\'') {
        (escaped(rest, '\''), Some(Kind::Literal))
    } else {
        (1 + word(&rest[1..]), Some(Kind::Lifetime))
    }
}

fn word(rest: &str) -> usize {
    // A raw name: `r#type`.
    let raw = if rest.starts_with("r#") { 2 } else { 0 };
    let tail = &rest[raw..];
    raw + tail.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tail.len())
}

fn number(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        let words = tokens(source).into_iter().filter(|token| token.kind == Kind::Word);
        words.map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_no_code_even_nested() {
        assert_eq!(words("a /* b /* c */ d */ e // f\n/// g\ng2 //! h"), ["a", "e", "g2"]);
    }

    #[test]
    fn strings_are_no_code_whatever_they_hold() {
        let source =
            r####"a "b \" c" d r#"e " f"# g b"h" i br##"j "# k"## l c"m" n b'o' p '"' q"####;
        assert_eq!(words(source), ["a", "d", "g", "i", "l", "n", "p", "q"]);
    }

    #[test]
    fn a_lifetime_is_not_an_open_quote() {
        assert_eq!(
            words("fn f<'a>(x: &'a str) -> char { '\\'' }"),
            ["fn", "f", "x", "str", "char"]
        );
        assert_eq!(words("'b' x 'static y"), ["x", "y"]);
    }

    #[test]
    fn names_that_begin_like_literals_are_names() {
        assert_eq!(words("r#type bar crate c b rb"), ["r#type", "bar", "crate", "c", "b", "rb"]);
    }

    #[test]
    fn places_are_bytes() {
        let source = "é = αβ;";
        for token in tokens(source) {
            assert_eq!(&source[token.begin..token.end()], token.text);
        }
    }

    #[test]
    fn an_unfinished_literal_or_comment_ends_with_the_text() {
        for source in ["\"abc", "/* abc", "r#\"abc", "'\\"] {
            assert!(words(source).is_empty(), "{source}");
        }
    }
}
