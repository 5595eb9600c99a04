//! Machines of the papers, and of today.
//!
//! | name | machine | processors | memory | context switch | quantum |
//! | --- | --- | --- | --- | --- | --- |
//! | `symmetry-a` | Sequent Symmetry Model A | 20 | write-through, one bus | 200 us | 100 ms |
//! | `symmetry-b` | Sequent Symmetry Model B | 20 | write-back, one bus | 200 us | 100 ms |
//! | `challenge` | SGI Challenge | 12 | write-back, one bus | 30 us | 10 ms |
//! | `firefly` | DEC Firefly | 6 | updated, one bus | 200 us | 100 ms |
//! | `makbilan` | Makbilan | 10 | uncached, one bus | 300 us | 50 ms |
//! | `modern` | a server of today, one socket | 16 | directory | 10 us | 2.8 ms |
//! | `modern-2s` | a server with two sockets | 128 | directory | 5 us | 2.8 ms |
//!
//! Model A of the Symmetry has 16 MHz Intel 386 processors, and is described by Anderson, Lazowska
//! and Levy 1989; Model B in section 4.6 of the same paper. The Challenge has 100 MHz MIPS R4400
//! processors (Michael and Scott 1997). The Firefly has CVAX processors (Karlin, Li, Manasse and
//! Owicki 1991). The Makbilan has 20 MHz Intel 386 processors (Feitelson and Rudolph 1992). The
//! figures of `modern` were measured by `stanchion machine`, those of `modern-2s` are from David,
//! Guerraoui and Trigonakis 2013.
//!
//! The context switch is the papers' C: going to sleep, a switch, and the time from the wake until
//! the thread can run.
//!
//! A paper never gives all numbers that a description needs. In the source of each machine every
//! constant has its origin: a section of a paper, a sum from figures of the paper, or an estimate,
//! and how it was made. So the *shape* of a simulation's result can be compared with a paper, and
//! the figures only as far as the constants behind them come from there.
//!
//! # Instructions
//!
//! A machine with a fitted [`compiler`](crate::machine::Processor::compiler) takes time for the
//! instructions between accesses: `challenge` alone. Its factor was fitted to the seconds of one
//! processor in figures 1 to 3 of Michael and Scott 1997, and to nothing else.
//!
//! The other machines take none, because these times contain instructions already:
//!
//! | machine | time | contains |
//! | --- | --- | --- |
//! | `symmetry-a`, `symmetry-b` | `exchange` | half of a measured lock and unlock |
//! | `makbilan` | `local` | one instruction at 4 MIPS |
//! | `modern` | `load`, `swap` of [`Measured`] | the loop that measures them |
//! | `modern-2s` | `exchange` | a locked instruction |
//!
//! So do times that programs declare by `work`, on any machine. Source files of the applications
//! and of `simulated-locks` are therefore charged no instructions:
//!
//! | declared time | programs |
//! | --- | --- |
//! | `CVAX_INSTRUCTION_NS` for each instruction of a program | the applications of 1991 and 1992 |
//! | [`own_instruction`](crate::machine::Processor::own_instruction) for each | those of 1997 |
//! | `INSTRUCTION_NS` for each | threads that do nothing, 1989 |
//! | 34 and 37 us for a fork, 37 and 42 us for a signal | user-level threads of 1992 |
//!
//! # Asymmetric fences
//!
//! On `modern` and `modern-2s` the kernel has an expedited
//! [membarrier](crate::machine::Membarrier). The heavy side of an asymmetric fence interrupts each
//! processor that runs another thread of the program, and the light side pays nothing. The kernels
//! of the papers' machines had none: there both sides are charged as fences. That takes no time,
//! because the accesses of these machines are in order.
//! [`symmetric_fences`](Machine::symmetric_fences) takes the barrier away from a server of today.
//!
//! # Distance of the measured machine from the computer
//!
//! `stanchion calibrate` takes nineteen locks and policies on a computer and on the machine that
//! [`modern_measured`] makes of its times, by one thread and by two that hold the lock for 25 ns.
//! On a virtual machine with two processors, 33 to 34 of the 38 ratios were within 30 % in three
//! runs while the two shared a cache (a fetch took 29 ns), and 28 to 30 in three while they did not
//! (116 to 128 ns). The others, mostly:
//!
//! | figure | simulated / real | reason |
//! | --- | --- | --- |
//! | `Ticket`, one thread | 1.3 to 1.5 | accesses beside an exchange come after it |
//! | `Clh`, two threads | 1.3 to 1.5 | the same: two exchanges, and fetches of two nodes |
//! | `HolderAware`, `Adaptive`, one cache | 0.65 | not found; asking is free |
//! | `TestAndSet` reading or with backoff, two caches | 0.6 | the releaser takes the lock again |
//! | `Ticket`, `TimePublishedMcs`, two caches | 1.4 to 1.9 | not found; perhaps a fetch too many |
//! | `AlwaysBlock`, `LastThreeSamples`, two caches | 0.5 to 0.65 | not found |
//!
//! A real processor does the plain accesses beside the exchange, the simulated one after it. To ask
//! whether the holder runs is free in virtual time. The simulated releaser more often takes the
//! lock again at once. There may be a fetch too many where one line has two words.
//!
//! The reasons are the nearest ones to hand, not shown by experiment. The host moves such
//! processors at any time, and figures of a run in which that happened unnoticed are off
//! throughout. A fourth run with a shared cache had 30, its locks nearly twice as fast as in the
//! other three. One more had 22, with a fetch of 17 ns measured beside locks as slow as without a
//! shared cache.

mod challenge;
mod firefly;
mod makbilan;
mod modern;
mod symmetry;

#[cfg(test)]
mod tests;

pub use challenge::challenge;
pub use firefly::firefly;
pub use makbilan::makbilan;
pub use modern::{Measured, modern, modern_2s, modern_measured};
pub use symmetry::{symmetry_a, symmetry_b};

use crate::Machine;

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 7] =
    ["symmetry-a", "symmetry-b", "challenge", "firefly", "makbilan", "modern", "modern-2s"];

/// There is no machine of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no machine {name:?}; {}", advice(.like))]
pub struct Unknown {
    /// The name that was asked for.
    pub name: String,
    /// The name that was probably meant.
    pub like: Option<&'static str>,
}

fn advice(like: &Option<&'static str>) -> String {
    match like {
        Some(like) => format!("did you mean {like:?}?"),
        None => format!("there are {}", NAMES.join(", ")),
    }
}

/// Returns the machine of that name, with as many processors as its paper had.
///
/// ```
/// use stanchion_simulator::machines;
/// assert_eq!(machines::by_name("symmetry-a")?.processors, 20);
/// let why = machines::by_name("symetry-a").unwrap_err();
/// assert_eq!(why.to_string(), r#"there is no machine "symetry-a"; did you mean "symmetry-a"?"#);
/// # Ok::<(), machines::Unknown>(())
/// ```
///
/// # Errors
///
/// [`Unknown`] if the name is not in [`NAMES`]. It gives the one that is most like it.
pub fn by_name(name: &str) -> Result<Machine, Unknown> {
    match name {
        "symmetry-a" => Ok(symmetry_a(20)),
        "symmetry-b" => Ok(symmetry_b(20)),
        "challenge" => Ok(challenge()),
        "firefly" => Ok(firefly()),
        "makbilan" => Ok(makbilan()),
        "modern" => Ok(modern(16)),
        "modern-2s" => Ok(modern_2s()),
        _ => Err(Unknown { name: name.into(), like: alike(name) }),
    }
}

fn alike(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let likeness = |known: &&str| strsim::jaro_winkler(&lower, known);
    let best = NAMES.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.8).then_some(best)
}
