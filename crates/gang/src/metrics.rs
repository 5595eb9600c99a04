//! The metrics of an executor.

use std::fmt;
use std::time::Duration;

/// The work of an executor since it was built. It is read without stopping the executor, so the
/// numbers may be a little apart.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// Gangs that were spawned.
    pub gangs_begun: u64,
    /// Gangs that have ended, with all their members.
    pub gangs_ended: u64,
    /// Gangs that were moved to another slot, because their old one could be given up.
    pub gangs_moved: u64,
    /// Turns that ended because their quantum was over.
    pub rotations_by_quantum: u64,
    /// Turns that ended because no member of the slot was active any more.
    pub rotations_by_idle: u64,
    /// Members that gave up their processor and came back.
    pub switches: u64,
    /// Members that were evicted from their processor because they had not left it.
    pub overstays: u64,
    /// Members that could not be interrupted under
    /// [`Switching::Signal`](crate::Switching::Signal) because the program has taken the signal:
    /// [`switching_refused`](crate::GangExecutor::switching_refused) names it.
    pub interruptions_refused: u64,
    /// The members that were evicted: of all gangs that run, and the worst of gangs that have
    /// ended.
    pub culprits: Vec<Overstay>,
    /// Slots that have gangs now.
    pub slots_used: usize,
    /// Threads that were started, the timer among them.
    pub threads: usize,
    /// Virtual processors times time, of all turns that are over while several slots took turns.
    pub processor_time: Duration,
    /// The part of [`processor_time`](Self::processor_time) in which no member had the processor.
    pub lost_processor_time: Duration,
}

impl Metrics {
    /// Returns the share of processor time that was lost to slots that are not filled, from 0 to 1.
    /// The paper gives 25 % under reasonable conditions.
    #[must_use]
    pub fn lost(&self) -> f64 {
        let seconds = self.processor_time.as_secs_f64();
        if seconds == 0.0 { 0.0 } else { self.lost_processor_time.as_secs_f64() / seconds }
    }
}

/// Writes one line.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} gangs, {} moved; {} turns ended by the quantum, {} by idle slots; {} switches, {} overstays; {:.0} % of processor time lost",
            self.gangs_begun,
            self.gangs_moved,
            self.rotations_by_quantum,
            self.rotations_by_idle,
            self.switches,
            self.overstays,
            self.lost() * 100.0
        )?;
        match self.interruptions_refused {
            0 => Ok(()),
            times => write!(f, "; {times} interruptions refused: the program has taken the signal"),
        }
    }
}

/// A member that did not leave its processor in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overstay {
    /// The gang, by its [number](crate::ScopedGangHandle::id).
    pub gang: u64,
    /// The index of the member.
    pub member: usize,
    /// The number of times.
    pub times: u64,
    /// The time in all, until it checked.
    pub lasted: Duration,
    /// True if it still overstays.
    pub now: bool,
}
