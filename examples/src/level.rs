//! `--level`: how many applications share the processors.

use clap::Args;
use stanchion_applications::Around;
use stanchion_multiprogramming::{Account, Multiprogramming, Refused};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// `--level L`; to be flattened into an example's arguments.
#[derive(Args, Clone, Copy, Debug)]
pub struct Level {
    /// Multiprogramming level, 1 to 3: this program and so many less one others share the
    /// processors, in turns of 10 ms. The others are not there: this program's threads are stopped
    /// for as long. Above 1 on Linux only.
    #[arg(long, allow_negative_numbers = true, value_name = "L", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3))]
    level: u32,
}

/// The processors, and the time that the threads of a run had of them.
#[derive(Debug)]
pub struct Shared {
    /// The number of applications that share the processors.
    level: u32,
    /// The wrapper of each thread's work.
    around: Around,
    /// The processor time of each thread, by number. Written by the thread when it ends.
    accounts: Arc<Mutex<Vec<(usize, Account)>>>,
}

impl Level {
    /// Starts the other applications. They are there until the result is dropped, and only for the
    /// threads of a run that has its [`Shared::around`].
    ///
    /// # Errors
    ///
    /// [`Refused`] if this system cannot do that.
    pub fn start(self) -> Result<Shared, Refused> {
        let level = self.level;
        let scheduler = Multiprogramming::level(level).start()?;
        let accounts = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&accounts);
        let around = Around::new(move |who, work| {
            // A thread that cannot be a member works all the same, and has no account.
            let member = if level > 1 { scheduler.join().ok() } else { None };
            work();
            if let Some(member) = member {
                let account = member.account();
                drop(member);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push((who, account));
            }
        });
        Ok(Shared { level, around, accounts })
    }
}

impl Shared {
    /// Returns the wrapper of each thread's work.
    #[must_use]
    pub fn around(&self) -> &Around {
        &self.around
    }

    /// The multiprogramming level.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Ends the run: writes the processor time of the threads, if they were stopped.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.level == 1 {
            return Ok(());
        }
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        accounts.sort_unstable_by_key(|(who, _)| *who);
        let granted: f64 = accounts.iter().map(|(_, account)| account.granted.as_secs_f64()).sum();
        let stopped: f64 = accounts.iter().map(|(_, account)| account.stopped.as_secs_f64()).sum();
        let stops: u64 = accounts.iter().map(|(_, account)| account.stops).sum();
        let breaches: u64 = accounts.iter().map(|(_, account)| account.breaches).sum();
        writeln!(
            out,
            "level {:<6} all threads together had {granted:.3} s and were stopped {stops} times for {stopped:.3} s, {breaches} times although they had asked to stay",
            self.level,
        )
    }
}
