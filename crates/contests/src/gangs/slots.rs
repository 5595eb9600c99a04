//! The cost of a slot switch: the time on one processor from the last step of a member of the old
//! slot to the first step of a member of the new slot.
//!
//! Two gangs take turns of a millisecond, with a member on each of the two processors. With
//! cooperative switching, members reach a checkpoint in each step. Otherwise they never do.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use machine::clock::now;
use stanchion_gang::{GangExecutor, Member, Switching};

use crate::options::Options;

const SEATS: usize = 2;
const GANGS: usize = 2;
const QUANTUM: Duration = Duration::from_millis(1);

pub(crate) fn run(options: &Options) {
    println!(
        "\nslots: a slot switch with {GANGS} gangs of {SEATS}, from one member's last step to the next one's first, ns"
    );
    println!("{:<34} {:>11} {:>11} {:>11} {:>11}", "", "p50", "p90", "p99", "switches");
    for switching in Switching::ALL {
        let name = format!("{switching:?}").to_lowercase();
        if !options.wants_cell(&name) {
            continue;
        }
        if let Err(refused) = switching.probe() {
            println!("{name:<34} {refused}");
            continue;
        }
        let mut gaps: Vec<u64> =
            (0..options.rounds()).flat_map(|_| round(switching, options.lasting())).collect();
        gaps.sort_unstable();
        let at = |percent: usize| gaps.get(gaps.len() * percent / 100).copied().unwrap_or(0);
        let (p50, p90, p99) = (at(50), at(90), at(99));
        println!("{name:<34} {p50:>11} {p90:>11} {p99:>11} {:>11}", gaps.len());
    }
}

/// The last step on a processor: the gang that took it in the lowest bit, the time above. The
/// processor's member writes it. It has cache lines of its own.
#[repr(align(128))]
struct Seat(AtomicU64);

/// Returns the gaps of one run, in nanoseconds.
fn round(switching: Switching, lasting: Duration) -> Vec<u64> {
    let executor = GangExecutor::builder()
        .seats(SEATS)
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
                let seat = &seats[member.seat()].0;
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
