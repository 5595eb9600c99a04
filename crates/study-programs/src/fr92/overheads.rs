//! The overheads of table 1: a switch and a spawn, without gangs and with.

use std::time::Duration;

use stanchion_gang::{Ended, GangExecutor, Member};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::thread;

/// The part of a quantum after which a member that has not looked had lost its turn.
const GONE: u32 = 2;

/// A turn of a member: the times of its first and of its last look.
type Turn = (Ticks, Ticks);

/// Returns the nanoseconds from a member's last look in its turn to the first look of the next
/// slot's member on the same processor, for each change of turns: of two gangs that do nothing but
/// look, each for `length`.
///
/// # Errors
///
/// If the executor refuses the gangs, or none took a turn.
pub fn slots(processors: usize, quantum: Duration, length: Duration) -> Result<Vec<f64>, String> {
    let built = GangExecutor::builder().processors(processors).quantum(quantum).pin(true).build();
    let executor = built.map_err(|refused| refused.to_string())?;
    let (origin, ends) = (clock::now(), length.as_nanos() as u64);
    let gone = (quantum / GONE).as_nanos() as u64;
    let body = move |member: &mut Member| -> Result<(usize, Vec<Turn>), Ended> {
        // Starting the gangs takes a part of the time on some machines, so each member has its own.
        let (mut turns, began) = (Vec::with_capacity(4_096), clock::now());
        let (mut came, mut last) = (began, began);
        while last.nanos_since(began) < ends {
            member.checkpoint()?;
            let now = clock::now();
            if now.nanos_since(last) > gone {
                turns.push((came, last));
                came = now;
            }
            last = now;
        }
        Ok((member.processor(), turns))
    };
    let gangs = [executor.spawn(processors, body), executor.spawn(processors, body)];
    let mut turns = vec![Vec::new(); processors];
    for (number, gang) in gangs.into_iter().enumerate() {
        let members = gang.map_err(|refused| refused.to_string())?.join();
        for (processor, of) in members.map_err(|error| error.to_string())? {
            let of = of
                .into_iter()
                .map(|(came, left)| (came.nanos_since(origin), left.nanos_since(origin), number));
            turns[processor].extend(of);
        }
    }
    let mut gaps = Vec::new();
    for on_one in &mut turns {
        on_one.sort_unstable();
        let next = on_one.windows(2).filter(|pair| pair[0].2 != pair[1].2 && pair[1].0 > pair[0].1);
        gaps.extend(next.map(|pair| (pair[1].0 - pair[0].1) as f64));
    }
    if gaps.is_empty() { Err("two gangs took no turns".to_owned()) } else { Ok(gaps) }
}

/// Returns the nanoseconds of starting and joining as many threads as there are processors, `times`
/// times: without gangs, and with.
///
/// # Errors
///
/// If the executor refuses a gang, or a thread panics.
pub fn spawning(processors: usize, times: usize) -> Result<[Vec<f64>; 2], String> {
    let built = GangExecutor::builder().processors(processors).build();
    let executor = built.map_err(|refused| refused.to_string())?;
    let (mut threads, mut gangs) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let began = clock::now();
        let started: Vec<_> = (0..processors).map(|_| thread::spawn(|| ())).collect();
        for thread in started {
            thread.join().map_err(|_| "a thread that does nothing panicked".to_owned())?;
        }
        threads.push(clock::now().nanos_since(began) as f64);
        let began = clock::now();
        let gang = executor.spawn(processors, |_: &mut Member| Ok(()));
        let gang = gang.map_err(|refused| refused.to_string())?;
        gang.join().map_err(|error| error.to_string())?;
        gangs.push(clock::now().nanos_since(began) as f64);
    }
    Ok([threads, gangs])
}
