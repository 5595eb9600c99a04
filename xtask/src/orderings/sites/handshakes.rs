//! The fences of handshakes: calls such as `SLEEP.light()`, on a constant with a name in capitals.

use super::{File, Role, Site};
use crate::orderings::lexer::Kind;

/// The fences of `machine::handshake::Handshake`.
const HANDSHAKE: [&str; 4] = ["light", "light_while_free", "heavy", "fence"];

impl File<'_> {
    /// The site, if token `at` is a fence that is called on a handshake: `SLEEP.light()`. It has no
    /// number yet.
    pub(super) fn handshake_at(&self, at: usize) -> Option<Site> {
        let fence = &self.tokens[at];
        let called = fence.kind == Kind::Word
            && HANDSHAKE.contains(&fence.text)
            && self.is(at + 1, '(')
            && self.is(at + 2, ')');
        if !called || self.skipped[at] {
            return None;
        }
        let receiver = at.checked_sub(2).filter(|_| self.is(at - 1, '.'))?;
        let name = &self.tokens[receiver];
        let in_capitals = name.kind == Kind::Word
            && name.text.chars().all(|letter| !letter.is_lowercase())
            && name.text.chars().any(char::is_uppercase);
        if !in_capitals {
            return None;
        }
        let place = self.tokens[self.path_begin(receiver)].begin..self.tokens[at + 2].end();
        let (role, ordering) = match fence.text {
            "fence" => (Role::SymmetricHandshake, "SeqCst"),
            _ => (Role::Handshake, "handshake"),
        };
        Some(Site {
            function: self.function_of(at),
            operation: format!("{}.{}", name.text, fence.text),
            ordinal: 0,
            role,
            ordering: ordering.to_owned(),
            line: self.line(at),
            value: place.clone(),
            place,
        })
    }
}
