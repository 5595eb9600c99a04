//! The cost of a slot switch: the time on one processor from the last step of a member of the old
//! slot to the first step of a member of the new slot.
//!
//! Two gangs take turns of a millisecond, with a member on each of the two processors. With
//! cooperative switching, members reach a checkpoint in each step. Otherwise they never do.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use stanchion_gang::{GangExecutor, Member, Switching};
use stanchion_machine::clock::now;

use super::ROUNDS;
use crate::Options;
use crate::report::{Report, Row, Table, Value};
use crate::statistics::quantile;

const SEATS: usize = 2;
const GANGS: usize = 2;
const QUANTUM: Duration = Duration::from_millis(1);

/// The time of a run.
const LASTING: Duration = Duration::from_millis(60);

/// The shares of the gaps that the quantiles in the table do not exceed.
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// Runs each mode in all rounds. The quantiles are those of the gaps of all rounds together.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    let mut report = Report::default();
    let title = format!(
        "slots: a switch with {GANGS} gangs of {SEATS}, from one member's last step to the next \
         one's first, ns"
    );
    let (mut rows, mut refusals) = (Vec::new(), Vec::new());
    for switching in Switching::ALL {
        let name = format!("{switching:?}").to_lowercase();
        if !options.wants("slots", &name) {
            continue;
        }
        if let Err(refused) = switching.probe() {
            refusals.push(format!("{name}: {refused}"));
            continue;
        }
        progress(&format!("slots: {name}"));
        let rounds = 0..options.rounds.unwrap_or(ROUNDS);
        let lasting = options.effort.time(LASTING);
        let mut gaps: Vec<f64> =
            rounds.flat_map(|_| round(switching, lasting)).map(|gap| gap as f64).collect();
        let mut values: Vec<Value> =
            SHARES.iter().map(|&share| Value::number(quantile(&mut gaps, share), 0)).collect();
        values.push(Value::number(gaps.len() as f64, 0));
        rows.push(Row { name, values });
    }
    if !rows.is_empty() {
        let columns = ["p50", "p90", "p99", "switches"].map(str::to_owned).into();
        report.table(Table { title, columns, rows });
    }
    refusals.into_iter().for_each(|refusal| report.text(refusal));
    report
}

/// The last step on a processor: the gang that took it in the lowest bit, the time above. The
/// processor's member writes it. It has cache lines of its own.
#[repr(align(128))]
struct Seat(AtomicU64);

/// Returns the gaps of one run, in nanoseconds.
fn round(switching: Switching, lasting: Duration) -> Vec<u64> {
    let executor = GangExecutor::builder()
        .processors(SEATS)
        .quantum(QUANTUM)
        .switching(switching)
        .pin(true)
        .build()
        .expect("two seats and a clock");
    let seats: Arc<[Seat]> = (0..SEATS).map(|_| Seat(AtomicU64::new(0))).collect();
    // No member runs before all have arrived: preferred members would keep the others from
    // arriving.
    let ready = Arc::new(Barrier::new(SEATS * GANGS));
    let (begin, lasting) = (now(), lasting.as_nanos() as u64);
    let gangs: Vec<_> = (0..GANGS)
        .map(|gang| {
            let (seats, ready) = (seats.clone(), ready.clone());
            executor.spawn(SEATS, move |member: &mut Member| {
                member.blocking(|| ready.wait());
                let seat = &seats[member.processor()].0;
                let mut gaps = Vec::with_capacity(10_000);
                let mut start = None;
                loop {
                    if switching == Switching::Cooperative {
                        member.checkpoint()?;
                    }
                    let time = now().nanos_since(begin);
                    if time - *start.get_or_insert(time) >= lasting {
                        return Ok(gaps);
                    }
                    let before = seat.swap(time << 1 | gang as u64, Relaxed);
                    if before != 0 && before & 1 != gang as u64 && gaps.len() < gaps.capacity() {
                        gaps.push(time.saturating_sub(before >> 1));
                    }
                    spin_loop();
                }
            })
        })
        .collect();
    let joined = gangs.into_iter().map(|gang| gang.expect("there are slots").join());
    joined.flat_map(|gaps| gaps.expect("no member panics")).flatten().collect()
}
