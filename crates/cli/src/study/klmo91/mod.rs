//! Karlin, Li, Manasse, Owicki: Empirical studies of competitive spinning for a shared-memory multiprocessor, 1991.
//!
//! ```text
//! programs ──recorded──▶ waits, lock by lock ──▶ fig1 … fig4 (show)    table1, table2 (advise::judge)
//!    └───────────race──▶ elapsed times ──▶ table3, table4                      all beside the figures in paper
//! ```

pub(crate) mod fig3;
pub(crate) mod fig4;
mod paper;
mod programs;
mod race;
mod recorded;
mod show;
pub(crate) mod table1;
pub(crate) mod table2;
pub(crate) mod table3;
pub(crate) mod table4;

use std::sync::Arc;

use super::context::{Context, Stop};
use recorded::{Own, Recorded};

/// The recordings that tables 1 and 2 are about, and why others were left out.
fn programs_of_tables(context: &Context) -> Result<(Vec<Arc<Recorded>>, Vec<String>), Stop> {
    context.plan(Own::ALL.len());
    Ok((recorded::all(&Own::ALL, context)?, Vec::new()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stanchion_competitive::waits::{Distribution, Observation, Recording};

    use super::recorded::Recorded;
    use crate::advise::pool::Pool;

    /// Made up: locks with their waits, so many of each length, of a program that ran for 1 ms on two processors where C is 1 µs.
    pub(super) fn recorded(name: &str, locks: &[(&str, &[(u64, u64)])]) -> Recorded {
        let waits = |points: &[(u64, u64)]| {
            let mut waits = Distribution::new(80);
            for &(length_ns, count) in points {
                for _ in 0..count {
                    waits.add(&Observation { length_ns, ..Observation::default() });
                }
            }
            waits
        };
        let recording = Recording {
            program: name.to_owned(),
            cost_ns: 1_000,
            unit_ns: 80,
            elapsed_ns: 1_000_000,
            locks: locks.iter().map(|(name, points)| ((*name).to_owned(), waits(points))).collect(),
            overflow: 0,
        };
        Recorded {
            name: name.to_owned(),
            beside: "Galaxy",
            what: "made up".to_owned(),
            pool: Pool::of(vec![recording]),
            elapsed: Duration::from_millis(1),
            processors: 2,
        }
    }
}
