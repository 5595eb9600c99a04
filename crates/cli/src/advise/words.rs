//! The advice for a lock, in words.

use stanchion_paper_klmo91::waits::judge::{
    BLOCK, COLUMNS, Costs, DEFAULT, FIXED, Judged, ONLINE, SPIN,
};
use stanchion_study::units::{nanos, percent, significant};

use super::had::Had;

/// With fewer waits than this nothing is advised.
pub(crate) const ENOUGH: u64 = 100;

/// If the costs of policies differ by no more than this share, they are equally good.
const TIE: f64 = 0.01;

/// If no policy costs less by more than this share, a program keeps what it has.
const KEEP: f64 = 0.05;

/// Which of several equally good ones is named: the default, then the simplest first. Always
/// spinning is never named: it has no bound, and where it is best, spinning for the best threshold
/// costs the same. The optimum for a known distribution is named apart, since it needs a recording.
const PREFERENCE: [usize; 8] = [DEFAULT, BLOCK, FIXED, 2, 6, 5, 7, 8];

/// The best policy that needs no recording: a place in [`COLUMNS`]. It is `had` if no other is
/// clearly better.
pub(crate) fn best(costs: &Costs, had: usize) -> usize {
    let relative = costs.relative();
    let least = PREFERENCE.iter().map(|&policy| relative[policy]).fold(f64::INFINITY, f64::min);
    let good = |&&policy: &&usize| relative[policy] <= least * (1.0 + TIE);
    if relative[had] <= least * (1.0 + KEEP) {
        return had;
    }
    PREFERENCE.iter().find(good).copied().unwrap_or(DEFAULT)
}

/// Says that nothing is advised for a lock of so few waits.
pub(crate) fn too_few(waits: u64) -> String {
    format!("too few waits ({waits}) for advice")
}

/// Said of a lock for which there is no mutex of ours.
pub(crate) const NO_MUTEX: &str = "no mutex that could be replaced: nothing is advised";

/// The advice for a lock of enough waits, in a few sentences. `chosen` is the best policy.
pub(crate) fn advice(chosen: usize, had: Had, judged: &Judged, cost: f64) -> String {
    let costs = &judged.costs[0];
    let relative = costs.relative();
    let of = |policy: usize| format!("{:.2}", relative[policy]);
    let what = match chosen {
        BLOCK => "block at once",
        SPIN => "spin until the lock is free",
        FIXED => "spin for C, then block",
        DEFAULT => "spin for a time that is learnt, one thread at a time, then block",
        2 => "spin for half of C, then block",
        5 => "spin for what suits the last three waits",
        6 => "spin for a time that follows the waits",
        7 => "spin for what suits the waits so far",
        _ => "spin for a random time up to C",
    };
    let name = COLUMNS[chosen].policy;
    let mut text = if chosen == had.policy() {
        format!(
            "Keep {}: {what}. `{name}` would have cost {} times the optimum.",
            had.words(),
            of(chosen)
        )
    } else {
        format!(
            "Best: {what}. `{name}` would have cost {} times the optimum, against {} for {}.",
            of(chosen),
            of(had.policy()),
            had.words()
        )
    };
    let saved = 1.0 - relative[ONLINE] / relative[chosen];
    if saved > TIE {
        let threshold = match judged.threshold {
            0.0 => "nothing at all".to_owned(),
            threshold => nanos(threshold),
        };
        text += &format!(
            " With these waits known beforehand, `OptimalOnline` spinning for {threshold} would have cost {} times it.",
            of(ONLINE)
        );
    }
    let worst = if relative[BLOCK] > relative[SPIN] { BLOCK } else { SPIN };
    text += &format!(
        " `{}` would have cost {} times.",
        COLUMNS[worst].policy,
        significant(relative[worst])
    );
    let blocks = judged.offline.share_blocked;
    text += &format!(
        " {} of the waits were worth blocking for, being C = {} or longer.",
        percent(blocks),
        nanos(cost)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_formulas::competitive::Distribution;

    fn judged(points: &[(f64, f64)]) -> Judged {
        Judged::of(&Distribution::from_points(points).unwrap(), &[1], 5_000.0).unwrap()
    }

    /// Judged waits for which the default's policy, which goes by the processors of the computer
    /// that runs the test, would have cost so much.
    fn with_default(points: &[(f64, f64)], times: f64) -> Judged {
        let mut judged = judged(points);
        for costs in &mut judged.costs {
            costs.policies[DEFAULT] = times * costs.optimum;
        }
        judged
    }

    #[test]
    fn short_waits_are_spun_for_and_long_ones_blocked() {
        let short = with_default(&[(200.0, 1_000.0)], 1.2);
        assert_eq!(COLUMNS[best(&short.costs[0], BLOCK)].policy, "FixedSpin");
        let long = with_default(&[(200_000.0, 1_000.0)], 1.2);
        assert_eq!(COLUMNS[best(&long.costs[0], DEFAULT)].policy, "AlwaysBlock");
        let text = advice(BLOCK, Had::Default, &long, 5_000.0);
        assert!(text.contains("`AlwaysBlock` would have cost 1.00 times the optimum"), "{text}");
        assert!(text.contains("against 1.20 for the default, `Mutex<T>` (`Adaptive`)."), "{text}");
        assert!(!text.contains("OptimalOnline"), "it would cost the same: {text}");
        assert!(text.contains("`AlwaysSpin` would have cost 40.0 times"), "{text}");
    }

    #[test]
    fn a_program_keeps_what_costs_five_per_cent_more() {
        let long = [(200_000.0, 1_000.0)];
        for (times, expected) in [(1.0, DEFAULT), (1.049, DEFAULT), (1.051, BLOCK)] {
            assert_eq!(best(&with_default(&long, times).costs[0], DEFAULT), expected, "{times}");
        }
        let text = advice(DEFAULT, Had::Default, &with_default(&long, 1.04), 5_000.0);
        assert!(text.starts_with("Keep the default, `Mutex<T>` (`Adaptive`): spin"), "{text}");
        assert!(text.contains("would have cost 1.04 times the optimum"), "{text}");
        // Another program has what it has.
        assert_eq!(best(&with_default(&long, 1.0).costs[0], BLOCK), BLOCK);
        assert_eq!(best(&with_default(&[(200.0, 1.0)], 1.0).costs[0], SPIN), SPIN);
        assert_eq!(best(&with_default(&[(200.0, 1.0)], 1.0).costs[0], BLOCK), DEFAULT);
    }

    #[test]
    fn a_threshold_is_given_where_it_helps() {
        let mixed = judged(&[(800.0, 700.0), (90_000.0, 300.0)]);
        let text = advice(FIXED, Had::Default, &mixed, 5_000.0);
        assert!(text.contains("`OptimalOnline` spinning for 800"), "{text}");
        assert!(text.contains("30.0\u{a0}% of the waits"), "{text}");
    }

    #[test]
    fn few_waits_are_told_as_a_number() {
        assert_eq!(too_few(12), "too few waits (12) for advice");
    }
}
