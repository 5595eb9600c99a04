//! Services of the machine's operating system: the protocols of the papers that schedulers and
//! locks together need.
//!
//! - [`keep`]: not to be preempted for a while. From Edler, Lipkis and Schonberg 1988, as Michael
//!   and Scott 1997 use it.
//! - [`activations`]: processors that come and go, with notice. From Anderson, Bershad, Lazowska
//!   and Levy 1992.
//! - [`Simulation::delays`](crate::Simulation::delays): threads that stop for a while, anywhere.
//!   From Burckhardt, Kothari, Musuvathi and Nagarakatte 2010.
//! - [`freeze`]: a thread that stops for ever after a given access. From the progress tests of this
//!   project.
//! - [`gang`]: slots of threads that run at the same time. From Feitelson and Rudolph 1992.
//! - [`watch`]: a sleeper is woken when another thread is switched. From Linux's records of
//!   switches, exactly.
//!
//! As [`inside`](crate::inside), it is called by the code of virtual threads. Outside a run each
//! function panics, naming itself.

// Each file has the rules of its service, and the calls of the program. The kernel's side, which
// the calls reach through the world of the run, is in the room `services`.

pub mod activations;
pub mod freeze;
pub mod gang;
pub mod keep;
pub mod watch;
