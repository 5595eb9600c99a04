//! The command as a reader of a report can type it.

use std::borrow::Cow;

/// The environment variable in which `cargo run` tells a program its package.
const PACKAGE: &str = "CARGO_PKG_NAME";

/// Returns the words that begin the command.
///
/// A program that cargo runs in a clone need not be on the path: `cargo stanchion` is. An installed
/// command is on the path, and has no such variable. A command that a program of another package
/// starts has that one's.
pub fn stanchion() -> &'static str {
    begin(std::env::var(PACKAGE).ok().as_deref())
}

fn begin(package: Option<&str>) -> &'static str {
    if package == Some("stanchion-cli") { "cargo stanchion" } else { "stanchion" }
}

/// Returns `word` as a shell takes it for one word.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_says_cargo_and_an_installed_command_does_not() {
        assert_eq!(begin(Some("stanchion-cli")), "cargo stanchion");
        assert_eq!(begin(Some("xtask")), "stanchion");
        assert_eq!(begin(None), "stanchion");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        for (word, shell) in [
            ("all89/fig3.5", "all89/fig3.5"),
            ("fig3.*", "'fig3.*'"),
            ("my study", "'my study'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), shell);
        }
    }
}
