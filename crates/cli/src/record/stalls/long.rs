//! Waits for locks that last for longer than they should.

use std::collections::BTreeSet;
use std::time::Duration;

use stanchion_competitive::waits::current::CurrentWait;
use stanchion_study::units::nanos;

use super::super::calls::Class;
use super::super::names::Names;
use super::locks::WaitView;
use super::view;

/// The shortest time from one look to the next.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest time from one look to the next.
const LONGEST: Duration = Duration::from_secs(1);

/// Remembers which long waits were told of.
#[derive(Debug)]
pub(super) struct Long {
    /// A wait that lasts for longer is told of.
    limit: Duration,
    /// The waits that were seen to last for longer, by process, thread and begin.
    told: BTreeSet<(u32, u32, u64)>,
}

impl Long {
    pub(super) const fn new(limit: Duration) -> Self {
        Self { limit, told: BTreeSet::new() }
    }

    /// Returns the time until the next look.
    pub(super) fn pause(&self) -> Duration {
        (self.limit / 4).clamp(SHORTEST, LONGEST)
    }

    /// Returns a line on each wait for a lock that lasts for longer than the limit for the first
    /// time. Waits for conditions, pauses and idle workers may last for as long as they want.
    pub(super) fn new_ones(
        &mut self,
        waits: &[(CurrentWait, Option<String>)],
        now: u64,
    ) -> Vec<String> {
        let limit = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let long: Vec<_> =
            waits.iter().filter(|(wait, _)| now.saturating_sub(wait.since_ns) > limit).collect();
        let key = |wait: &CurrentWait| (wait.process, wait.thread, wait.since_ns);
        // Those that ended need not be remembered.
        let there: BTreeSet<_> = long.iter().map(|(wait, _)| key(wait)).collect();
        self.told.retain(|wait| there.contains(wait));
        let mut names = Names::new();
        let mut lines = Vec::new();
        for (wait, place) in long {
            if !self.told.insert(key(wait)) {
                continue;
            }
            let view = view::named(wait, place.as_deref(), now, &mut names);
            if view.kind == Class::Lock.word() {
                lines.push(self.line(wait, &view));
            }
        }
        lines
    }

    fn line(&self, wait: &CurrentWait, view: &WaitView) -> String {
        let limit = nanos(self.limit.as_nanos() as f64);
        format!(
            "the thread {} of the process {} has waited for longer than {limit}: {}",
            wait.thread, wait.process, view.name
        )
    }
}
