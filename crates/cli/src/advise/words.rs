//! The advice for a lock, in words.

use stanchion_paper_klmo91::waits::judge::{BLOCK, COLUMNS, Costs, FIXED, Judged, ONLINE};
use stanchion_study::units::{count, nanos};

/// With fewer waits than this nothing is advised.
pub(crate) const ENOUGH: u64 = 50;

/// If the costs of policies differ by no more than this share, they are equally good.
const TIE: f64 = 0.01;

/// Which of several equally good ones is named: the simplest first. Always spinning is never named:
/// it has no bound, and where it is best, spinning for the best threshold costs the same. The
/// optimum for a known distribution is named apart, since it needs a recording.
const PREFERENCE: [usize; 7] = [BLOCK, FIXED, 2, 6, 5, 7, 8];

/// The best policy that needs no recording: a place in [`COLUMNS`].
pub(crate) fn best(costs: &Costs) -> usize {
    let relative = costs.relative();
    let least = PREFERENCE.iter().map(|&policy| relative[policy]).fold(f64::INFINITY, f64::min);
    let good = |&&policy: &&usize| relative[policy] <= least * (1.0 + TIE);
    PREFERENCE.iter().find(good).copied().unwrap_or(FIXED)
}

/// Says that nothing is advised for a lock of so few waits, or for several locks of fewer than
/// [`ENOUGH`] each.
pub(crate) fn too_few(waits: Option<u64>) -> String {
    let how_many = match waits {
        Some(waits) => count(waits as usize, "wait"),
        None => format!("fewer than {ENOUGH} waits each"),
    };
    format!(
        "{how_many}, too few to advise on: record for longer. `Mutex<T>` is right for a lock that few wait for."
    )
}

/// The advice, in a few sentences.
pub(crate) fn advice(waits: u64, judged: &Judged, cost: f64) -> String {
    if waits < ENOUGH {
        return too_few(Some(waits));
    }
    let costs = &judged.costs[0];
    let relative = costs.relative();
    let chosen = best(costs);
    let name = COLUMNS[chosen].policy;
    let what = match chosen {
        BLOCK => "block at once",
        FIXED => "spin for C, then block",
        2 => "spin for half of C, then block",
        5 => "spin for what suits the last three waits",
        6 => "spin for a time that follows the waits",
        7 => "spin for what suits the waits so far",
        _ => "spin for a random time up to C",
    };
    let mut text = format!(
        "Best: {what}: `PolicyMutex<T, {name}>` would have cost {:.2} times the optimum.",
        relative[chosen]
    );
    let saved = 1.0 - relative[ONLINE] / relative[chosen];
    if saved > TIE {
        let threshold = match judged.threshold {
            0.0 => "nothing at all".to_owned(),
            threshold => nanos(threshold),
        };
        text += &format!(
            " With these waits known beforehand, `PolicyMutex<T, OptimalOnline>` spinning for {threshold} \
             would have cost {:.2} times it.",
            relative[ONLINE]
        );
    }
    let worst = if relative[BLOCK] > relative[1] { BLOCK } else { 1 };
    text += &format!(
        " {} would have cost {} times.",
        if worst == BLOCK { "Always blocking" } else { "Always spinning" },
        stanchion_study::units::significant(relative[worst])
    );
    let blocks = judged.offline.share_blocked;
    text += &format!(
        " {} of the waits were worth blocking for, being C = {} or longer.",
        stanchion_study::units::percent(blocks),
        nanos(cost)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_formulas::competitive::Distribution;

    fn judged(points: &[(f64, f64)]) -> Judged {
        Judged::of(&Distribution::from_points(points).unwrap(), 5_000.0).unwrap()
    }

    #[test]
    fn short_waits_are_spun_for_and_long_ones_blocked() {
        let short = judged(&[(200.0, 1_000.0)]);
        assert_eq!(COLUMNS[best(&short.costs[0])].policy, "FixedSpin");
        let long = judged(&[(200_000.0, 1_000.0)]);
        assert_eq!(COLUMNS[best(&long.costs[0])].policy, "AlwaysBlock");
        let text = advice(1_000, &long, 5_000.0);
        assert!(text.contains("PolicyMutex<T, AlwaysBlock>` would have cost 1.00"), "{text}");
        assert!(!text.contains("OptimalOnline"), "it would cost the same: {text}");
        assert!(text.contains("Always spinning would have cost 40.0 times"), "{text}");
    }

    #[test]
    fn a_threshold_is_given_where_it_helps() {
        let mixed = judged(&[(800.0, 700.0), (90_000.0, 300.0)]);
        let text = advice(1_000, &mixed, 5_000.0);
        assert!(text.contains("`PolicyMutex<T, OptimalOnline>` spinning for 800"), "{text}");
        assert!(text.contains("30.0\u{a0}% of the waits"), "{text}");
    }

    #[test]
    fn few_waits_are_not_judged() {
        assert!(advice(49, &judged(&[(1.0, 49.0)]), 5_000.0).contains("too few"));
    }
}
