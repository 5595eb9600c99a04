//! The result of an exchange with the neighbours.

/// The values that a member got from the previous and from the next member.
pub type Exchanged<T> = (Option<Vec<T>>, Option<Vec<T>>);
