//! What a runtime is told here, and why not more.

use core::fmt;

use machine::presence::Refused;
use machine::stack::Guards;

/// How a runtime learns that one of its kernel threads is stuck.
///
/// ```
/// use stanchion_activations::{Runtime, Tier};
///
/// match Runtime::new(1)?.capabilities().tier {
///     Tier::Records => println!("plain code may block"),
///     Tier::Heartbeats(refused) => eprintln!("`blocking` is worth while here: {refused}"),
///     _ => {}
/// }
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// The kernel records each switch: running processors see it with a load, and a parked one is woken.
    Records,
    /// It does not say: every few milliseconds somebody looks whether the thread's clock moves.
    Heartbeats(Refused),
    /// Activations are switched off: nobody looks, and only [`blocking`](crate::blocking) says so.
    Off,
}

/// What [`Runtime::capabilities`](crate::Runtime::capabilities) tells. Its `Display` says it in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// How it learns that a kernel thread is stuck.
    pub tier: Tier,
    /// What stands below its threads' stacks: with [`Guards::Protected`] there can be some 32,000 of them.
    pub guards: Guards,
    /// Whether each of its processors is one of the machine, on which its kernel threads stay.
    pub pinned: bool,
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tier {
            Tier::Records => f.write_str("the kernel tells which threads block and are preempted"),
            Tier::Heartbeats(refused) => {
                write!(
                    f,
                    "every few milliseconds it is looked which threads block, because {refused}"
                )
            }
            Tier::Off => {
                f.write_str("activations are off: only `blocking` says that a thread blocks")
            }
        }?;
        f.write_str(if self.pinned { "; pinned" } else { "; not pinned" })
    }
}
