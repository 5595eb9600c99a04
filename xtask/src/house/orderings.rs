//! An ordering other than Relaxed has a comment: on its line, or above, inside its statement or
//! before it.
//!
//! A comment that mentions orderings may speak for several statements in a row. So it counts for
//! those that follow it up to an empty line, or up to the begin or end of a block.

use super::places::{Place, Places};
use super::prose::comment;
use crate::orderings::sites::{Role, sites};

/// The words that a comment about orderings has.
const NAMES: [&str; 8] =
    ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst", "order", "fence", "pairs"];

/// Returns the orderings of a file without a comment. A file that cannot be read for orderings has
/// none.
pub(crate) fn silent(path: &str, source: &str) -> Places {
    let lines: Vec<&str> = source.lines().collect();
    let found = sites(source).unwrap_or_default().into_iter();
    let asked =
        found.filter(|site| !matches!(site.role, Role::Handshake | Role::SymmetricHandshake));
    asked
        .filter(|site| !is_told(&lines, site.line - 1))
        .map(|site| Place::new(path, site.line, format!("`{}` without a comment", site.ordering)))
        .collect()
}

/// Returns whether a comment speaks for the ordering on line `at`, counted from 0.
fn is_told(lines: &[&str], at: usize) -> bool {
    if comment(lines[at]).is_some() {
        return true;
    }
    // Whether the lines seen so far belong to the statement of the ordering.
    let mut own = true;
    for (number, line) in lines[..at].iter().enumerate().rev() {
        let trimmed = line.trim();
        if let Some(text) = comment(line).filter(|_| trimmed.starts_with("//")) {
            if own || NAMES.iter().any(|name| text.contains(name)) {
                return true;
            }
            continue;
        }
        let code = trimmed.split(" // ").next().unwrap_or(trimmed).trim_end();
        if code.ends_with('{') {
            // The block may belong to the statement: then its comment is on the line above.
            return own && number > 0 && comment(lines[number - 1]).is_some();
        }
        if code.is_empty() || code.ends_with('}') {
            return false;
        }
        if code.ends_with(';') {
            own = false;
        } else if own && comment(line).is_some() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent_lines(source: &str) -> Vec<usize> {
        silent("a.rs", source).iter().map(|place| place.line).collect()
    }

    #[test]
    fn a_comment_on_the_line_or_above_the_statement_tells() {
        let source = "fn f() {\n    x.load(Ordering::Acquire); // pairs\n    // Why.\n    let y = x\n        .load(Ordering::Acquire);\n    x.load(Ordering::Acquire);\n}";
        assert_eq!(silent_lines(source), [6]);
    }

    #[test]
    fn a_comment_about_orderings_speaks_for_the_statements_that_follow() {
        let source = "fn f() {\n    // SeqCst, twice: see above.\n    x.swap(1, Ordering::SeqCst);\n    x.load(Ordering::SeqCst);\n\n    x.load(Ordering::SeqCst);\n}\nfn g() {\n    x.load(Ordering::SeqCst);\n}";
        assert_eq!(silent_lines(source), [6, 9]);
    }

    #[test]
    fn a_comment_before_the_block_that_the_ordering_decides_tells() {
        let source = "fn f() {\n    // Pairs with the Release of `g`.\n    if x.load(Ordering::Acquire) == 1 {\n    }\n    // Acquire: as above.\n    while h(|| {\n        x.load(Ordering::Acquire)\n    }) {}\n}";
        assert!(silent_lines(source).is_empty());
    }

    #[test]
    fn relaxed_and_tests_need_no_comment() {
        let source = "fn f() { x.load(Ordering::Relaxed) }\n#[cfg(test)]\nmod tests {\n    fn g() { x.load(Ordering::SeqCst); }\n}";
        assert!(silent_lines(source).is_empty());
    }
}
