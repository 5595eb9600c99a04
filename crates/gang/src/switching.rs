//! How members get off their processors when their slot's turn is over, and on when it comes.
//!
//! | | who goes | who comes | a member that never looks | needs |
//! | --- | --- | --- | --- | --- |
//! | [`Cooperative`](Switching::Cooperative) | leaves where it looks: at barriers and checkpoints | is woken by who leaves | keeps its processor: the next runs beside it after a grace | nothing |
//! | [`Signal`](Switching::Signal) | is interrupted wherever it is, and leaves in the handler | as above | is stopped | Linux, a free real-time signal |
//! | [`Priority`](Switching::Priority) | falls behind all others of its processor; leaves where it looks | is preferred to all others of its processor | runs when nobody else of its processor does | Linux, `RLIMIT_RTPRIO` or `CAP_SYS_NICE`; pinned threads |
//!
//! A switch, from the last step of one member to the first of the next on the same seat, takes 5.3,
//! 8.7 and 9.3 µs in the median, in this order, on two processors that nobody else uses (`cargo
//! bench -p benches --bench gang -- slots`). Where a dozen other threads want them, the 99th of a
//! hundred takes 7 ms and 4 ms, because the system runs the others first, but 0.1 ms by priorities.
//!
//! What a system refuses is not an error: the executor switches cooperatively then, and says so.

use std::fmt;

use machine::control;
pub use machine::control::Refused;

use crate::scheduler::Preemption;

/// How slots are switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Switching {
    /// Members leave at barriers and checkpoints, where they look whether their slot is on.
    #[default]
    Cooperative,
    /// Members that have not left when the slot's turn ends are interrupted by a signal, and sleep
    /// in its handler until the turn comes again.
    ///
    /// A member may be stopped anywhere, with any lock in its hands, the allocator's among them:
    /// who wants it, in whatever gang, waits for that member's turn. A member whose gang is moved
    /// to other seats goes to their processors when it looks.
    ///
    /// Most system calls are begun again after the signal. Those that have a timeout, and some
    /// others, end with `EINTR`: the [first page](crate#calls-that-a-signal-ends) names them. They
    /// do not inside of [`Member::blocking`](crate::Member::blocking).
    ///
    /// If the program takes the signal for itself later, it gets none of these signals. Members are
    /// then switched cooperatively, and
    /// [`switching_refused`](crate::GangExecutor::switching_refused) and
    /// [`Metrics::interruptions_refused`](crate::Metrics::interruptions_refused) tell. Another
    /// [`probe`](Self::probe), or another executor that is built with this mode, chooses another
    /// signal for all executors. A member that blocks the signal in its own thread is switched
    /// cooperatively.
    Signal,
    /// As the paper did: the tasks of the slot that is on have a higher priority than all others.
    /// Here they are `SCHED_FIFO`.
    ///
    /// They go before everything else on their processors, the rest of the system too, but for the
    /// twentieth of a second that Linux keeps for others in each (`kernel.sched_rt_runtime_us`).
    /// Threads are pinned, whatever the builder says of that.
    ///
    /// So members should not wait for other threads, nor others for them by spinning: an ordinary
    /// thread that holds a lock which they want may get no processor for a second. That goes for
    /// the executor's own too, while another thread spawns a gang and members spawn others. And
    /// there should not be more seats than processors: members that share one take it from each
    /// other only where they yield or sleep, and a thread that is just being started, which is
    /// ordinary at first, waits for both.
    Priority,
}

/// In one word, as a program's argument might have it.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cooperative, Self::Signal, Self::Priority];

    /// Whether this system allows it. Tries it, on the calling thread; the handler of the signal
    /// that is chosen for [`Signal`](Self::Signal) stays.
    ///
    /// # Errors
    ///
    /// [`Refused`], and what would mend it.
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

    /// What the gate does with members that do not look.
    pub(crate) fn preemption(self) -> Preemption {
        match self {
            Self::Cooperative => Preemption::None,
            Self::Signal => Preemption::Signal,
            Self::Priority => Preemption::Priority,
        }
    }
}
