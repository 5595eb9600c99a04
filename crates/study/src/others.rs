//! The processor time that other programs took during a measurement. Figures of a machine that does
//! something else say little.
//!
//! The figure comes from the kernel's own account: `/proc/stat` of the processors that the study
//! may use, less the time of this process and of those that it started. The unit is a tick of a
//! hundredth of a second. That is fine enough for a measurement that lasts seconds. A virtual
//! machine's stolen time counts as that of others.

use std::fs::read_to_string;

/// More than this share of the processors' time, and a measurement was disturbed.
pub const DISTURBED: f64 = 0.1;

/// Time shorter than this, over all processors, says nothing in units of a tick.
const LEAST_TICKS: u64 = 40;

/// The account at one moment, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// All time of the processors, idle time included.
    total: u64,
    /// The part of that in which the processors were not idle.
    busy: u64,
    /// The part that this process had, and those that it started.
    ours: u64,
}

impl Account {
    /// Returns the account of these processors now, or nothing if the system keeps none that can be
    /// read. Of the processes that this one started, those that have ended count as its own, and
    /// those of `running`.
    pub fn now(processors: &[usize], running: &[u32]) -> Option<Self> {
        let (total, busy) = machine_wide(&read_to_string("/proc/stat").ok()?, processors)?;
        let mut ours = process(&read_to_string("/proc/self/stat").ok()?)?;
        for number in running {
            ours += process(&read_to_string(format!("/proc/{number}/stat")).ok()?)?;
        }
        Some(Self { total, busy, ours })
    }

    /// Returns the share of the time since `before` that other programs had, or nothing if the time
    /// was too short.
    pub fn others_since(self, before: Self) -> Option<f64> {
        let total = self.total.saturating_sub(before.total);
        let busy = self.busy.saturating_sub(before.busy);
        let others = busy.saturating_sub(self.ours.saturating_sub(before.ours));
        (total >= LEAST_TICKS).then(|| (others as f64 / total as f64).min(1.0))
    }
}

/// All ticks of `processors` so far and the busy ones, from `/proc/stat`.
fn machine_wide(stat: &str, processors: &[usize]) -> Option<(u64, u64)> {
    let (mut total, mut busy) = (0, 0);
    for processor in processors {
        let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{processor} ")))?;
        // user nice system idle iowait irq softirq steal, then guests', which user and nice
        // contain.
        let fields: Vec<u64> =
            line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let all: u64 = fields.iter().sum();
        total += all;
        busy += all - fields.get(3)? - fields.get(4)?;
    }
    Some((total, busy))
}

/// Ticks that a process and its children that have ended have had, from its `stat`.
fn process(stat: &str) -> Option<u64> {
    // The name, in parentheses, may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    // Fields 14 to 17 of all; the one after the name is the third.
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 3 30 300 30 3 3 3 0 0\n\
                        cpu0 10 1 10 100 10 1 1 1 0 0\n\
                        cpu1 20 2 20 200 20 2 2 2 0 0\n\
                        cpu10 9 9 9 9 9 9 9 9 9 9\nintr 5\n";

    #[test]
    fn the_kernel_s_account() {
        assert_eq!(machine_wide(STAT, &[1]), Some((268, 48)));
        assert_eq!(machine_wide(STAT, &[0, 1]), Some((402, 72)));
        assert_eq!(machine_wide(STAT, &[2]), None);
        assert_eq!(machine_wide("cpu0 1 2 x", &[0]), None);
        let fields = "12 (a) b) R 1 1 1 0 -1 0 0 0 0 0 70 7 3 2 20 0";
        assert_eq!(process(fields), Some(82));
        assert_eq!(process("12 (a) R 1"), None);
    }

    #[test]
    fn others_are_what_is_left() {
        let before = Account { total: 1_000, busy: 500, ours: 100 };
        let after = |busy, ours| Account { total: 1_200, busy, ours };
        assert_eq!(after(700, 300).others_since(before), Some(0.0));
        assert_eq!(after(600, 150).others_since(before), Some(0.25));
        // Rounding may give us more than there was.
        assert_eq!(after(500, 300).others_since(before), Some(0.0));
        let short = Account { total: 1_030, busy: 530, ours: 100 };
        assert_eq!(short.others_since(before), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_keeps_an_account() {
        let processors = stanchion_machine::topology::processors();
        let account = Account::now(&processors, &[]).expect("Linux keeps one");
        assert!(account.total > 0 && account.busy <= account.total, "{account:?}");
    }
}
