//! What an executor has done.

use std::fmt;
use std::time::Duration;

/// What an executor has done since it was built. Read without stopping it, so that numbers may be a
/// little apart.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// Gangs that were spawned.
    pub gangs_begun: u64,
    /// Gangs all of whose members have ended.
    pub gangs_ended: u64,
    /// Gangs that were moved to another slot, because the one they had could be given up.
    pub gangs_moved: u64,
    /// Slots whose turn was over because their quantum was.
    pub rotations_by_quantum: u64,
    /// Slots whose turn was over because nobody there took part any more.
    pub rotations_by_idle: u64,
    /// How often a member has left its seat and come back.
    pub switches: u64,
    /// How often a member was put out of its seat because it had not left.
    pub overstays: u64,
    /// How often a member could not be interrupted under
    /// [`Switching::Signal`](crate::Switching::Signal) because the program has taken the signal:
    /// [`switching_refused`](crate::GangExecutor::switching_refused) says which.
    pub interruptions_refused: u64,
    /// Who that was, of the gangs that run and the worst of those that have ended.
    pub culprits: Vec<Overstay>,
    /// Slots that have gangs now.
    pub slots_used: usize,
    /// Threads that were started, the clock among them.
    pub threads: usize,
    /// Seats by time, of all turns that are over while several slots took turns.
    pub processor_time: Duration,
    /// The part of [`processor_time`](Self::processor_time) in which nobody had the seat.
    pub lost_processor_time: Duration,
}

impl Metrics {
    /// The share of seat-time that was lost to slots that are not filled, from 0 to 1. The paper
    /// gives 25 % under reasonable conditions.
    #[must_use]
    pub fn lost(&self) -> f64 {
        let seconds = self.processor_time.as_secs_f64();
        if seconds == 0.0 { 0.0 } else { self.lost_processor_time.as_secs_f64() / seconds }
    }
}

/// In a line.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} gangs, {} moved; {} turns ended by the quantum, {} by idle seats; {} switches, {} overstays; {:.0} % of seat-time lost",
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

/// A member that did not leave its seat in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overstay {
    /// The gang, by its [number](crate::GangHandle::id).
    pub gang: u64,
    /// The member of it.
    pub member: usize,
    /// How often.
    pub times: u64,
    /// For how long in all, until it looked.
    pub lasted: Duration,
    /// Whether it still does.
    pub now: bool,
}
