//! Switch records on Linux; nothing elsewhere, nor under Miri.

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(in crate::presence) mod event;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod mapped;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod view;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(in crate::presence) mod wiped;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(crate) use self::{mapped::Mapped, view::View};
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(in crate::presence) use event::last_error;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(in crate::presence) use mapped::page_size;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
pub(crate) use elsewhere::Mapped;
