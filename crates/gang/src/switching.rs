//! The ways in which members are taken off their processors when the turn of their slot is over,
//! and put on when it comes.
//!
//! [`Cooperative`](Switching::Cooperative) needs nothing of the system. A member leaves where it
//! checks: at barriers and checkpoints. The leaving member wakes the next one. A member that never
//! checks keeps its processor: the next one runs beside it after a grace.
//!
//! [`Signal`](Switching::Signal) needs Linux and a free real-time signal. A member is interrupted
//! wherever it is, and leaves in the handler. The leaving member wakes the next one. A member that
//! never checks is stopped.
//!
//! [`Priority`](Switching::Priority) needs Linux, `RLIMIT_RTPRIO` or `CAP_SYS_NICE`, and pinned
//! threads. A member that is off falls behind all other threads of its CPU, and leaves where it
//! checks. A member that is on is preferred to all others of its CPU. A member that never checks
//! runs when no other thread of its CPU does.
//!
//! A switch, from the last step of one member to the first of the next on the same processor, takes
//! 5.3, 8.7 and 9.3 µs in the median, in this order, on two CPUs that no other program uses (`cargo
//! contest slots`). Where a dozen other threads want them, the 99th of a hundred takes 7 ms and 4
//! ms, because the system runs the others first, but 0.1 ms by priorities.
//!
//! A refusal of the system is not an error: the executor then switches cooperatively, and reports
//! it.

use std::fmt;

use stanchion_machine::control;
pub use stanchion_machine::control::Refused;

use crate::scheduler::Preemption;

/// The way in which slots are switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Switching {
    /// Members leave at barriers and checkpoints, where they check whether their slot is on.
    #[default]
    Cooperative,
    /// Members that have not left when the slot's turn ends are interrupted by a signal, and sleep
    /// in its handler until the turn comes again.
    ///
    /// A member may be stopped anywhere, with any lock, the allocator's among them. A thread of any
    /// gang that wants the lock waits for that member's turn. If a gang is moved to other virtual
    /// processors, its members go there when they check.
    ///
    /// Most system calls are begun again after the signal. Those that have a timeout, and some
    /// others, end with `EINTR`: the [first page](crate#calls-that-a-signal-ends) names them. They
    /// do not inside of [`Member::blocking`](crate::Member::blocking).
    ///
    /// If the program takes the signal for itself later, it gets none of these signals. Members are
    /// then switched cooperatively, and
    /// [`switching_refused`](crate::GangExecutor::switching_refused) and
    /// [`Metrics::interruptions_refused`](crate::Metrics::interruptions_refused) report it. Another
    /// [`probe`](Self::probe), or another executor that is built with this mode, chooses another
    /// signal for all executors. A member that blocks the signal in its own thread is switched
    /// cooperatively.
    Signal,
    /// The tasks of the slot that is on have a higher priority than all others, as in the paper.
    /// Here they are `SCHED_FIFO`.
    ///
    /// They go before all other threads of their CPUs, also of other programs, except for a
    /// twentieth of each second that Linux keeps for the others (`kernel.sched_rt_runtime_us`).
    /// Threads are pinned, whatever the builder says of that.
    ///
    /// So members should not wait for other threads, nor others for them by spinning. An ordinary
    /// thread that holds a lock which they want may get no CPU for a second. That holds also for
    /// the executor's own lock, while another thread spawns a gang and members spawn others.
    ///
    /// There should not be more virtual processors than CPUs. Members that share a CPU take it from
    /// each other only where they yield or sleep. A thread that is just being started is ordinary
    /// at first, and waits for both.
    Priority,
}

/// Writes one word, as for an argument of a program.
impl fmt::Display for Switching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cooperative => "cooperative",
            Self::Signal => "signal",
            Self::Priority => "priority",
        })
    }
}

impl Switching {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Cooperative, Self::Signal, Self::Priority];

    /// Tries whether this system allows it, on the calling thread. The handler of the signal that
    /// is chosen for [`Signal`](Self::Signal) stays.
    ///
    /// # Errors
    ///
    /// [`Refused`] and what would mend it.
    ///
    /// ```
    /// use stanchion_gang::Switching;
    ///
    /// for switching in Switching::ALL {
    ///     match switching.probe() {
    ///         Ok(()) => println!("{switching:?}: yes"),
    ///         Err(why) => println!("{switching:?}: no: {why}"),
    ///     }
    /// }
    /// assert_eq!(Switching::Cooperative.probe(), Ok(()));
    /// ```
    pub fn probe(self) -> Result<(), Refused> {
        match self {
            Self::Cooperative => Ok(()),
            Self::Signal => control::can_interrupt(),
            Self::Priority => control::can_prefer(Preemption::TIMER),
        }
    }

    /// Returns the means by which the scheduler takes members off that do not check.
    pub(crate) fn preemption(self) -> Preemption {
        match self {
            Self::Cooperative => Preemption::None,
            Self::Signal => Preemption::Signal,
            Self::Priority => Preemption::Priority,
        }
    }
}
