//! The memory orderings named in a source file, found without a compiler.
//!
//! [`lexer`] splits the text into tokens, so that comments, examples and strings are out of the
//! way; [`sites`] finds the orderings among them, in which function and of which operation each is,
//! and to what it can be weakened.

pub(crate) mod lexer;
pub(crate) mod sites;
