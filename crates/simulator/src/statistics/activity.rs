//! The activities of a thread, and the time spent on each.

use crate::Time;
use serde::{Deserialize, Serialize};

/// The activities of a thread, or a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Computing, and reading from its own cache.
    Useful,
    /// Waiting for the memory: a miss, a write that must be on the bus, an exchange.
    Stalled,
    /// Waiting for a word to change, on a processor.
    Spinning,
    /// Going to sleep, waking others, being put on a processor.
    Switching,
    /// Ready, but not on a processor.
    Ready,
    /// Parked, asleep, or waiting for another thread's end.
    Blocked,
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Useful, Self::Stalled, Self::Spinning, Self::Switching, Self::Ready, Self::Blocked];

    /// Its name, a word.
    ///
    /// ```
    /// assert_eq!(stanchion_simulator::Activity::Useful.name(), "useful");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Useful => "useful",
            Self::Stalled => "stalled",
            Self::Spinning => "spinning",
            Self::Switching => "switching",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
        }
    }
}

/// The time spent on each [`Activity`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times([Time; Activity::ALL.len()]);

impl Times {
    /// The time spent on `activity`.
    #[must_use]
    pub fn of(&self, activity: Activity) -> Time {
        self.0[activity as usize]
    }

    #[inline]
    pub(crate) fn add(&mut self, activity: Activity, time: Time) {
        self.0[activity as usize] += time;
    }
}

impl core::iter::Sum for Times {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), |mut sum, times| {
            Activity::ALL.into_iter().for_each(|activity| sum.add(activity, times.of(activity)));
            sum
        })
    }
}
