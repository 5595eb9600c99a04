//! The support that a runtime has from the kernel, and the reason why it is not more.

use core::fmt;

use stanchion_machine::presence::Refused;
use stanchion_machine::presence::watch::Watch;
use stanchion_machine::stack::Guards;

use crate::runtime::state::RuntimeState;

/// The means by which a runtime detects that one of its kernel threads is stuck.
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
    /// The kernel records each switch. Running processors see it with a load, and a sleeping
    /// monitor is woken.
    Records,
    /// The kernel does not record switches. Every few milliseconds the monitor looks whether the
    /// thread's clock moves.
    Heartbeats(Refused),
    /// Activations are switched off: no thread looks, and only [`blocking`](crate::blocking)
    /// announces a block.
    Off,
}

/// The capabilities of a runtime, from [`Runtime::capabilities`](crate::Runtime::capabilities). Its
/// `Display` says them in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The means by which it detects stuck kernel threads.
    pub tier: Tier,
    /// The guards below its threads' stacks: with [`Guards::Protected`] there can be some 32,000
    /// stacks.
    pub guards: Guards,
    /// `true` if each of its processors is one of the machine, on which its kernel threads stay.
    pub pinned: bool,
}

/// Returns the capabilities of a runtime.
pub(super) fn capabilities(runtime: &RuntimeState) -> Capabilities {
    let tier = match runtime.detection.monitor.watch().map(Watch::refused) {
        None => Tier::Off,
        Some(None) => Tier::Records,
        Some(Some(refused)) => Tier::Heartbeats(refused.clone()),
    };
    let guards = runtime.fibers.stacks.guards();
    Capabilities { tier, guards, pinned: runtime.processors.are_pinned() }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tier {
            Tier::Records => {
                f.write_str("the kernel reports which threads block and are preempted")
            }
            Tier::Heartbeats(refused) => {
                write!(
                    f,
                    "every few milliseconds the monitor looks which threads block, because {refused}"
                )
            }
            Tier::Off => {
                f.write_str("activations are off: only `blocking` announces that a thread blocks")
            }
        }?;
        f.write_str(if self.pinned { "; pinned" } else { "; not pinned" })
    }
}
