//! Stacks of the real machine: on a Unix system, with guards made by its memory protection.

#[cfg(all(unix, not(miri)))]
mod alternate;
#[cfg(all(unix, not(miri)))]
mod line;
#[cfg(all(unix, not(miri)))]
mod memory;
#[cfg(all(unix, not(miri)))]
mod overflow;
#[cfg(all(unix, not(miri)))]
mod refusal;
#[cfg(all(unix, not(miri)))]
mod table;

#[cfg(all(unix, not(miri)))]
pub(crate) use self::{
    memory::{Memory, guards, half_is_used, page},
    overflow::{Watched, watch},
};

#[cfg(not(all(unix, not(miri))))]
mod elsewhere;
#[cfg(not(all(unix, not(miri))))]
pub(crate) use elsewhere::{Memory, Watched, guards, half_is_used, page, watch};
