//! A pseudo-scheduler: this program's threads run as if other applications had their processors part of the time.
//!
//! What a lock, a queue or a barrier is worth shows when its threads are preempted at the wrong moment. Other programs do that too, but not on demand
//! and not alike twice. Here threads [`join`](Multiprogramming::join) a scheduler of this process's own: at the end of each quantum a signal
//! interrupts the thread wherever it is, and its handler stays for `level - 1` quanta, which is the time that the other applications would have had.
//!
//! ```text
//! level 2      ran │ stopped │ ran │ stopped │ ran      a quantum each; the slices of different threads do not end together
//! level 3      ran │ stopped   stopped │ ran │ …
//! ```
//!
//! Why the handler sleeps and does not spin, as the paper's did: its machine had a processor for each process and one for the scheduler. A handler
//! that spins keeps a processor busy for nobody, takes it from the scheduler and from whatever else runs, and is preempted itself. Asleep, it leaves
//! the processor idle, and to the stopped thread's own program it looks just as taken, *if the program's other threads are pinned elsewhere*. So
//! [pin](crate::topology::pin) one thread to each processor before it joins; threads that roam, or share a processor, would run in each other's
//! stops.
//!
//! Why each thread wakes itself: the handler sleeps until a time, so nobody stays stopped because the scheduler's thread is late, or gone with a
//! fork.
//!
//! After a fork the child's copy of a member is stopped no more, and its copy of the scheduler lets nobody join and waits for nothing when it is
//! dropped: the scheduler's thread is the parent's. A child may start a scheduler of its own.
//!
//! A thread that has asked not to be preempted ([`preemption::keep`](crate::preemption::keep)) is lent [`grace`](Settings::grace) once a slice; it
//! stops when it thanks, or when the grace is over.
//!
//! On a simulated machine nothing needs to be stopped: its description says how many `applications` share the processors, and the same body runs
//! there at each level (`machine.scheduling.applications = 2`); `Statistics` has what each thread was granted. So this module is for the real
//! machine, as `kernel` and `switches` are.
//!
//! # What it does not do
//!
//! It adds to what the system's own scheduler does: on a machine that runs something else, threads lose their processors to that too. Only Linux can
//! send a signal to one thread by number; elsewhere levels above 1 are refused. A system call that a signal interrupts is begun again where the
//! system does that (`SA_RESTART`); `poll`, `nanosleep` and the like end early. While stopped, a thread holds whatever it held: the allocator's lock
//! as well as yours.
//!
//! Source: Michael and Scott 1997, section 4.

use core::marker::PhantomData;
use core::time::Duration;

use crate::backend::multiprogramming as backend;

/// The largest level.
pub const MOST: u32 = 64;

/// What a [`Multiprogramming`] is to be.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `start`"]
pub struct Settings {
    level: u32,
    quantum: Duration,
    grace: Option<Duration>,
    signal: Option<i32>,
}

impl Settings {
    /// How long a thread runs before it is stopped: 10 ms unless told otherwise. From 100 µs to 10 s.
    pub const fn quantum(mut self, quantum: Duration) -> Self {
        self.quantum = quantum;
        self
    }

    /// How long a thread may stay that asked not to be preempted: a tenth of a quantum unless told otherwise; with 0 requests are not heeded.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Which signal interrupts the threads: a real-time signal that nobody handles. Unless told otherwise, the first one that is free.
    pub const fn signal(mut self, signal: i32) -> Self {
        self.signal = Some(signal);
        self
    }

    /// Starts the scheduler: a thread of this process, which sleeps between the ends of slices. At level 1 there is nothing to do, and no thread.
    ///
    /// The first start of a process installs a handler for the signal, which stays: a signal may be under way when the scheduler ends.
    ///
    /// # Errors
    ///
    /// [`Refused`] says what is wrong and what would mend it.
    pub fn start(self) -> Result<Multiprogramming, Refused> {
        let Self { level, quantum, grace, signal } = self;
        if !(1..=MOST).contains(&level) {
            return Err(Refused::Level { level });
        }
        if !(Duration::from_micros(100)..=Duration::from_secs(10)).contains(&quantum) {
            return Err(Refused::Quantum { quantum });
        }
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let times = Times {
            quantum: nanos(quantum),
            others: nanos(quantum) * u64::from(level - 1),
            grace: nanos(grace.unwrap_or(quantum / 10).min(quantum)),
        };
        let scheduler = backend::Scheduler::start(times, signal)?;
        Ok(Multiprogramming { level, scheduler })
    }
}

/// In nanoseconds.
#[cfg_attr(not(all(target_os = "linux", not(miri))), allow(dead_code))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) quantum: u64,
    /// What the other applications have between two slices of ours.
    pub(crate) others: u64,
    pub(crate) grace: u64,
}

/// A scheduler under which the threads that join it run beside other applications that are not there. Dropping it lets all of them go on.
#[derive(Debug)]
pub struct Multiprogramming {
    level: u32,
    scheduler: backend::Scheduler,
}

impl Multiprogramming {
    /// A scheduler for `level` applications, this one among them: 1 is a dedicated machine.
    ///
    /// ```
    /// use core::time::Duration;
    /// use stanchion_machine::multiprogramming::Multiprogramming;
    ///
    /// let machine = Multiprogramming::level(2).quantum(Duration::from_millis(1)).start()?;
    /// let account = std::thread::scope(|scope| {
    ///     let worker = scope.spawn(|| {
    ///         let member = machine.join()?;
    ///         while member.account().stops < 2 {
    ///             core::hint::spin_loop(); // the experiment
    ///         }
    ///         Ok(member.account())
    ///     });
    ///     worker.join().unwrap()
    /// })?;
    /// // Two stops of a quantum, after a slice of a quantum each (the first may be shorter).
    /// assert!(account.stopped >= Duration::from_millis(2));
    /// assert!(account.granted >= Duration::from_millis(1));
    /// # Ok::<(), stanchion_machine::multiprogramming::Refused>(())
    /// ```
    pub const fn level(level: u32) -> Settings {
        let quantum = Duration::from_millis(10);
        Settings { level, quantum, grace: None, signal: None }
    }

    /// How many applications share the processors.
    #[must_use]
    pub fn applications(&self) -> u32 {
        self.level
    }

    /// Puts the calling thread under this scheduler, until the returned guard is dropped or the thread ends.
    ///
    /// Its first slice is shorter than the others, by another part for each member, so that the slices of members do not end together.
    ///
    /// # Errors
    ///
    /// [`Refused::Member`] if the thread is under such a scheduler already, or is ending; [`Refused::Forked`] if the scheduler was started before
    /// this process was forked.
    pub fn join(&self) -> Result<Member, Refused> {
        self.scheduler.join().map(|member| Member { member, not_send: PhantomData })
    }
}

/// The calling thread is under a pseudo-scheduler; dropping this lets it go. Not `Send`: it is about this thread.
#[derive(Debug)]
#[must_use = "the thread leaves when this is dropped"]
pub struct Member {
    member: backend::Member,
    not_send: PhantomData<*const ()>,
}

impl Member {
    /// What the thread has had until now.
    #[must_use]
    pub fn account(&self) -> Account {
        self.member.account()
    }
}

/// What a member has had of its processor, since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The time that it was not stopped: what figures are to be normalised by. The system may have run somebody else in it.
    pub granted: Duration,
    /// The time that it was stopped.
    pub stopped: Duration,
    /// How often it was stopped.
    pub stops: u64,
    /// How often it was let stay because it had asked.
    pub graces: u64,
    /// How often it was stopped although it had asked: the grace was over, or there was none.
    pub breaches: u64,
}

/// Why there is no such scheduler, or why a thread may not join it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// No such level.
    #[error("level {level} of multiprogramming: there are the levels 1 to {MOST}")]
    Level {
        /// The level asked for.
        level: u32,
    },
    /// No such quantum.
    #[error("a quantum of {quantum:?}: take one from 100 us to 10 s")]
    Quantum {
        /// The quantum asked for.
        quantum: Duration,
    },
    /// Only Linux can stop one thread.
    #[error(
        "levels above 1 need signals to single threads, a thing of Linux; this program runs on {os}"
    )]
    Unsupported {
        /// What it runs on.
        os: &'static str,
    },
    /// That is no signal to stop threads by.
    #[error("signal {signal} is not a real-time signal: choose one from {from} to {to}, or none")]
    NotRealTime {
        /// The signal asked for.
        signal: i32,
        /// The first that would do.
        from: i32,
        /// The last.
        to: i32,
    },
    /// Somebody handles or ignores it.
    #[error("signal {signal} is taken: the program handles or ignores it already; choose another")]
    Taken {
        /// The signal asked for.
        signal: i32,
    },
    /// Somebody handles or ignores each.
    #[error("no signal is free: the program handles or ignores every one from {from} to {to}")]
    NoSignal {
        /// The first that was tried.
        from: i32,
        /// The last.
        to: i32,
    },
    /// The thread is a member already, or is ending.
    #[error("the thread is under a pseudo-scheduler already, or is ending")]
    Member,
    /// The scheduler stayed behind in the process that forked this one.
    #[error("the pseudo-scheduler was started before the fork: start one of this process's own")]
    Forked,
    /// Anything else.
    #[error("{call} failed with error {errno}")]
    Other {
        /// The system call.
        call: &'static str,
        /// What it answered.
        errno: i32,
    },
}
