#![doc = include_str!("../README.md")]

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

#[cfg(not(all(target_os = "linux", not(any(miri, stanchion_loom, stanchion_simulated)))))]
mod elsewhere;
#[cfg(all(target_os = "linux", not(any(miri, stanchion_loom, stanchion_simulated))))]
mod linux;

#[cfg(not(all(target_os = "linux", not(any(miri, stanchion_loom, stanchion_simulated)))))]
use elsewhere as backend;
#[cfg(all(target_os = "linux", not(any(miri, stanchion_loom, stanchion_simulated))))]
use linux as backend;

/// The largest level.
pub const MOST: u32 = 64;

/// The settings of a [`Multiprogramming`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `start`"]
pub struct Settings {
    /// The number of applications that share the processors.
    level: u32,
    /// The time that a thread runs before it is stopped.
    quantum: Duration,
    /// The time that a thread that asked may stay, if set.
    grace: Option<Duration>,
    /// The signal that interrupts the threads, if set.
    signal: Option<i32>,
}

impl Settings {
    /// Sets how long a thread runs before it is stopped: from 100 µs to 10 s, and 10 ms by default.
    pub const fn quantum(mut self, quantum: Duration) -> Self {
        self.quantum = quantum;
        self
    }

    /// Sets how long a thread may stay that asked not to be preempted: a tenth of a quantum by
    /// default. With 0, requests are ignored.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Sets the signal that interrupts the threads: a real-time signal that the program neither
    /// handles nor ignores. By default it is the first one that is free.
    pub const fn signal(mut self, signal: i32) -> Self {
        self.signal = Some(signal);
        self
    }

    /// Starts the scheduler: a thread of this process, which sleeps between the ends of slices. At
    /// level 1 there is nothing to do, and no thread is started.
    ///
    /// The first start of a process installs a handler for the signal. The handler stays, because a
    /// signal may be under way when the scheduler ends.
    ///
    /// # Errors
    ///
    /// [`Refused`], which says what is wrong and what would mend it.
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

/// The times of a scheduler, in nanoseconds.
#[cfg_attr(
    not(all(target_os = "linux", not(any(miri, stanchion_loom, stanchion_simulated)))),
    allow(dead_code)
)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The time that a thread runs before it is stopped.
    pub(crate) quantum: u64,
    /// The time that the other applications run between two slices of a member.
    pub(crate) others: u64,
    /// The time that a thread that asked may stay.
    pub(crate) grace: u64,
}

/// A scheduler under which the threads that join it run as if beside other applications. Dropping
/// it lets all of them run freely.
#[derive(Debug)]
pub struct Multiprogramming {
    /// The number of applications that share the processors.
    level: u32,
    /// The backend's scheduler, with its thread and its members.
    scheduler: backend::Scheduler,
}

impl Multiprogramming {
    /// Returns the settings of a scheduler for `level` applications, this one among them: level 1
    /// is a dedicated machine.
    ///
    /// ```
    /// use core::time::Duration;
    /// use stanchion_multiprogramming::Multiprogramming;
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
    /// # Ok::<(), stanchion_multiprogramming::Refused>(())
    /// ```
    pub const fn level(level: u32) -> Settings {
        let quantum = Duration::from_millis(10);
        Settings { level, quantum, grace: None, signal: None }
    }

    /// Returns how many applications share the processors.
    #[must_use]
    pub fn applications(&self) -> u32 {
        self.level
    }

    /// Puts the calling thread under this scheduler, until the returned guard is dropped or the
    /// thread ends.
    ///
    /// The first slice is shorter than the others, by another part for each member, so that the
    /// slices of members do not end together.
    ///
    /// # Errors
    ///
    /// [`Refused::Member`] if the thread is under such a scheduler already, or is ending.
    /// [`Refused::Forked`] if the scheduler was started before this process was forked.
    pub fn join(&self) -> Result<Member, Refused> {
        self.scheduler.join().map(|member| Member { member, not_send: PhantomData })
    }
}

/// A guard that keeps the calling thread under a pseudo-scheduler until it is dropped. Not `Send`:
/// it belongs to this thread.
#[derive(Debug)]
#[must_use = "the thread leaves when this is dropped"]
pub struct Member {
    /// The backend's entry of the thread.
    member: backend::Member,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

impl Member {
    /// Returns the time that the thread has had until now.
    #[must_use]
    pub fn account(&self) -> Account {
        self.member.account()
    }
}

/// The time that a member has had on its processor since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The time in which it was not stopped, by which results are to be normalised. The system may
    /// have run another program in it.
    pub granted: Duration,
    /// The time in which it was stopped.
    pub stopped: Duration,
    /// The number of times that it was stopped.
    pub stops: u64,
    /// The number of times that it was allowed to stay because it had asked.
    pub graces: u64,
    /// The number of times that it was stopped although it had asked, because the grace was over or
    /// there was none.
    pub breaches: u64,
}

/// The reason why such a scheduler cannot start, or why a thread may not join it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such level.
    Level {
        /// The level asked for.
        level: u32,
    },
    /// The quantum is out of range.
    Quantum {
        /// The quantum asked for.
        quantum: Duration,
    },
    /// Only Linux can stop one thread.
    Unsupported {
        /// The operating system that the program runs on.
        os: &'static str,
    },
    /// The signal cannot be used to stop threads.
    NotRealTime {
        /// The signal asked for.
        signal: i32,
        /// The first signal that would do.
        from: i32,
        /// The last one.
        to: i32,
    },
    /// The program handles or ignores the signal.
    Taken {
        /// The signal asked for.
        signal: i32,
    },
    /// The program handles or ignores each such signal.
    NoSignal {
        /// The first signal that was tried.
        from: i32,
        /// The last one.
        to: i32,
    },
    /// The thread is a member already, or is ending.
    Member,
    /// The scheduler stayed behind in the process that forked this one.
    Forked,
    /// Any other error.
    Other {
        /// The system call.
        call: &'static str,
        /// The error number that it returned.
        errno: i32,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level { level } => {
                write!(f, "level {level} of multiprogramming: there are the levels 1 to {MOST}")
            }
            Self::Quantum { quantum } => {
                write!(f, "a quantum of {quantum:?}: take one from 100 us to 10 s")
            }
            Self::Unsupported { os } => write!(
                f,
                "levels above 1 need signals to single threads, which only Linux has, on the real \
                 machine; this program runs on {os}, or is built for loom or a simulated machine"
            ),
            Self::NotRealTime { signal, from, to } => write!(
                f,
                "signal {signal} is not a real-time signal: choose one from {from} to \
                 {to}, or none"
            ),
            Self::Taken { signal } => write!(
                f,
                "signal {signal} is taken: the program handles or ignores it already; \
                 choose another"
            ),
            Self::NoSignal { from, to } => write!(
                f,
                "no signal is free: the program handles or ignores every one from {from} \
                 to {to}"
            ),
            Self::Member => {
                f.write_str("the thread is under a pseudo-scheduler already, or is ending")
            }
            Self::Forked => f.write_str(
                "the pseudo-scheduler was started before the fork: start one of this \
                 process's own",
            ),
            Self::Other { call, errno } => write!(f, "{call} failed with error {errno}"),
        }
    }
}

impl core::error::Error for Refused {}
