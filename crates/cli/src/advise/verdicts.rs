//! The paper's claims, judged by these waits.

use super::{LockAdvice, words};
use stanchion_paper_klmo91::waits::judge::{COLUMNS, COMPETITIVE, Costs, FACTORS, ONLINE};
use stanchion_paper_klmo91::waits::pool::Pool;
use stanchion_study::outcome::Verdict;
use stanchion_study::units::{count, grouped, percent};

/// A claim of the paper, and whether it holds for these waits.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The claim, with its section.
    pub(crate) claim: &'static str,
    /// The verdict on it.
    pub(crate) verdict: Verdict,
}

/// All claims.
pub(crate) fn claims(
    pool: &Pool,
    locks: &[LockAdvice],
    all: &[Costs; FACTORS.len()],
    broken: &[String],
) -> Vec<Claim> {
    let relative = all[0].relative();
    vec![
        theorems(locks.len(), broken),
        Claim {
            claim: "every competitive policy costs less than 1.8 times the optimum (section 4)",
            verdict: worst(&relative),
        },
        Claim {
            claim: "OptimalOnline costs at most 1.24 times the off-line optimum (table 1)",
            verdict: Verdict::when(
                relative[ONLINE] <= 1.24,
                format!("{:.3} times", relative[ONLINE]),
            ),
        },
        Claim {
            claim: "more than 90 % of contended waits have two contenders (section 7)",
            verdict: two_contenders(pool),
        },
    ]
}

fn theorems(locks: usize, broken: &[String]) -> Claim {
    let verdict = match broken {
        [] => Verdict::Holds(format!(
            "for {}, alone and together, at {}",
            count(locks, "lock"),
            FACTORS.map(|factor| format!("{factor} C")).join(", ")
        )),
        broken => Verdict::Differs(format!(
            "a mistake in stanchion, please report it: {}",
            broken.join("; ")
        )),
    };
    let claim =
        "FixedSpin costs at most 2 and OptimalOnline at most 1.582 times the optimum (theorems)";
    Claim { claim, verdict }
}

fn worst(relative: &[f64]) -> Verdict {
    let worst = COMPETITIVE.max_by(|&one, &other| relative[one].total_cmp(&relative[other]));
    let worst = worst.unwrap_or(ONLINE);
    let figures = format!("the dearest is {}, {:.3} times", COLUMNS[worst].policy, relative[worst]);
    Verdict::when(relative[worst] < 1.8, figures)
}

fn two_contenders(pool: &Pool) -> Verdict {
    let arrivals = pool.arrivals();
    let all: u64 = arrivals.iter().sum();
    if all < words::ENOUGH {
        return Verdict::NotJudged(format!("only {} recorded", count(all as usize, "arrival")));
    }
    let share = |others: usize| arrivals[others] as f64 / all as f64;
    let more: u64 = arrivals[2..].iter().sum();
    let figures = format!(
        "of {} waits, {} found no other waiter, {} one, {} more",
        grouped(all),
        percent(share(0)),
        percent(share(1)),
        percent(more as f64 / all as f64)
    );
    Verdict::when(share(0) > 0.9, figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_paper_klmo91::waits::judge::POLICIES;

    #[test]
    fn the_dearest_competitive_policy_decides() {
        let mut relative = [1.0; POLICIES];
        relative[0] = 9.0;
        relative[1] = 9.0;
        relative[8] = 1.99;
        assert!(matches!(worst(&relative), Verdict::Holds(_)), "it is not about these");
        relative[6] = 1.85;
        let verdict = worst(&relative);
        assert!(matches!(verdict, Verdict::Differs(_)));
        assert!(verdict.because().contains("RandomWalk, 1.850"));
    }
}
