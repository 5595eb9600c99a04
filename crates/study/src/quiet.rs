//! Waits for a quiet moment before an experiment that needs this computer to itself: one in which
//! other programs have little of the processors.
//!
//! The account of the last experiment says whether other programs were busy meanwhile. A study on a
//! quiet computer so waits for no sample but the first.

use std::thread::sleep;
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::others::{Account, DISTURBED};

/// The time for which a study waits at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time before one experiment.
    pub each: Duration,
    /// The time of a whole study.
    pub all: Duration,
}

impl Patience {
    /// Waits for nothing.
    pub const NONE: Self = Self { each: Duration::ZERO, all: Duration::ZERO };

    /// Returns the times of a study on this computer.
    ///
    /// Short loads, as of a package that is installed or a page that is drawn, are over after ten
    /// seconds. A longer load does not end for the study. A minute is a seventh of a quick study,
    /// and five are a quarter of another one: longer waits would be worse than the marks that
    /// disturbed experiments get.
    pub fn of(quick: bool) -> Self {
        let all = if quick { 60 } else { 300 };
        Self { each: Duration::from_secs(10), all: Duration::from_secs(all) }
    }
}

/// The length of a sample of the processors' accounts.
const SAMPLE: Duration = Duration::from_millis(500);

/// The waits of a study.
#[derive(Debug)]
pub(crate) struct Quiet {
    /// The longest wait before one experiment.
    each: Duration,
    /// The time that is left for waits.
    left: Duration,
    /// True if the last experiment was not disturbed.
    was_quiet: bool,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wait {
    /// The length.
    time: Duration,
    /// The largest share of the processors' time that other programs had in a sample.
    share: f64,
    /// True if the wait ended with a quiet moment.
    is_quiet: bool,
}

impl Quiet {
    pub(crate) fn new(patience: Patience) -> Self {
        Self { each: patience.each, left: patience.all, was_quiet: false }
    }

    /// Waits for a quiet moment of `processors`. Returns the wait, if there was one.
    pub(crate) fn wait(&mut self, processors: &[usize], interrupt: &Interrupt) -> Option<Wait> {
        self.wait_with(|| {
            let before = Account::now(processors, &[])?;
            sleep(SAMPLE);
            let share = Account::now(processors, &[])?.others_since(before)?;
            (!interrupt.asked()).then_some(share)
        })
    }

    /// Does the same by samples of other programs' share. A sample without one ends the wait.
    fn wait_with(&mut self, mut sample: impl FnMut() -> Option<f64>) -> Option<Wait> {
        let most = self.each.min(self.left);
        if self.was_quiet || most.is_zero() {
            return None;
        }
        let mut wait = Wait { time: Duration::ZERO, share: 0.0, is_quiet: true };
        loop {
            let share = sample()?;
            wait.is_quiet = share <= DISTURBED;
            if wait.is_quiet || wait.time >= most {
                break;
            }
            wait.share = wait.share.max(share);
            wait.time += SAMPLE;
        }
        self.left -= wait.time.min(self.left);
        (!wait.time.is_zero()).then_some(wait)
    }

    /// Notes the share that other programs had during an experiment.
    pub(crate) fn note(&mut self, share: Option<f64>) {
        // A short experiment has no account.
        if let Some(share) = share {
            self.was_quiet = share <= DISTURBED;
        }
    }
}

impl Wait {
    /// Describes the wait before the experiment `id`.
    pub(crate) fn words(&self, id: &str) -> String {
        let (time, share) = (self.time.as_secs_f64().ceil(), self.share * 100.0);
        if self.is_quiet {
            format!(
                "waited {time:.0} s for a quiet moment before {id}; other programs had {share:.0} % \
                 of the processors"
            )
        } else {
            format!(
                "gave up waiting for a quiet moment before {id} after {time:.0} s: other programs \
                 have {share:.0} % of the processors. Close them, or figures will not repeat"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits by these samples, then by quiet ones. Returns the wait and the number of samples.
    fn wait(quiet: &mut Quiet, shares: &[f64]) -> (Option<Wait>, usize) {
        let mut taken = 0;
        let wait = quiet.wait_with(|| {
            taken += 1;
            Some(shares.get(taken - 1).copied().unwrap_or(0.0))
        });
        (wait, taken)
    }

    #[test]
    fn a_wait_ends_with_a_quiet_moment_or_after_its_time() {
        let seconds = Duration::from_secs;
        let mut quiet = Quiet::new(Patience { each: seconds(10), all: seconds(25) });
        assert_eq!(wait(&mut quiet, &[0.05]), (None, 1));
        let (waited, taken) = wait(&mut quiet, &[0.4, 0.3, 0.2]);
        let waited = waited.unwrap();
        assert_eq!((waited.time, waited.is_quiet, taken), (seconds(1) + SAMPLE, true, 4));
        let said = "waited 2 s for a quiet moment before fr92/fig4; other programs had 40 % of the";
        assert!(waited.words("fr92/fig4").starts_with(said), "{}", waited.words("fr92/fig4"));
        let (waited, taken) = wait(&mut quiet, &[0.9; 100]);
        let waited = waited.unwrap();
        assert_eq!((waited.time, waited.is_quiet, taken), (seconds(10), false, 21));
        assert!(waited.words("regsim").contains("after 10 s: other programs have 90 %"));
        assert_eq!(wait(&mut quiet, &[0.9; 100]).0.unwrap().time, seconds(10));
        // Of the whole time three seconds and a half are left.
        assert_eq!(wait(&mut quiet, &[0.9; 100]).0.unwrap().time, seconds(3) + SAMPLE);
        assert_eq!(wait(&mut quiet, &[0.9; 100]), (None, 0));
    }

    #[test]
    fn after_a_quiet_experiment_nothing_is_sampled() {
        let mut quiet = Quiet::new(Patience::of(true));
        quiet.note(Some(0.02));
        quiet.note(None);
        assert_eq!(wait(&mut quiet, &[0.9]), (None, 0));
        quiet.note(Some(0.2));
        assert_eq!(wait(&mut quiet, &[0.9]).1, 2);
        let mut none = Quiet::new(Patience::NONE);
        assert_eq!(wait(&mut none, &[0.9]), (None, 0));
        // A system without accounts, or Ctrl-C.
        let mut quiet = Quiet::new(Patience::of(false));
        assert_eq!(quiet.wait_with(|| None), None);
    }
}
