//! Text in a drawing: fixed-width, escaped, and short enough.

use crate::statistics::Activity;
use core::fmt::{self, Formatter};

/// Pixels for each character of text: 11 pixels high, 0.6 of that wide, rounded up.
pub(super) const LETTER: usize = 7;
/// Pixels between things.
pub(super) const GAP: usize = 12;

/// A text that begins at a position, or has its middle there.
pub(super) fn text(
    out: &mut Formatter<'_>,
    (x, y): (usize, usize),
    anchor: &str,
    text: &str,
) -> fmt::Result {
    let text = escaped(text);
    writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>")
}

pub(super) fn shares(sums: &[u64], whole: u64) -> String {
    let shares = Activity::ALL.iter().zip(sums).filter(|(_, sum)| **sum > 0);
    let shares: Vec<_> = shares
        .map(|(activity, &sum)| format!("{} {}", activity.name(), percent(sum, whole)))
        .collect();
    shares.join(", ")
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    percent_of(part.into(), whole.into())
}

pub(super) fn percent_of(part: u128, whole: u128) -> String {
    let tenths = if whole == 0 { 0 } else { (2_000 * part + whole) / (2 * whole) };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// At most so many characters.
pub(super) fn shortened(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        return name.to_owned();
    }
    name.chars().take(limit - 2).chain("..".chars()).collect()
}

/// As text of XML, which has no control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push(char::REPLACEMENT_CHARACTER);
            }
            _ => safe.push(letter),
        }
    }
    safe
}
