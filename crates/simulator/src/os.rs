//! What the machine's operating system does for those who ask: the protocols of the papers that schedulers and locks together need.
//!
//! | module | what | from |
//! | --- | --- | --- |
//! | [`keep`] | not to be preempted for a while | Edler, Lipkis and Schonberg 1988, as Michael and Scott 1997 use it |
//! | [`gang`] | slots of threads that run at the same time | Feitelson and Rudolph 1992 |
//!
//! As [`inside`](crate::inside), it is called by the code of virtual threads; outside a run each function panics, naming itself.

pub mod gang;
pub(crate) mod interrupt;
pub mod keep;
