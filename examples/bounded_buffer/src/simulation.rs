//! The simulated program: half of the threads put, the others take, each on a processor of its own.

use std::borrow::Borrow;
use std::time::Duration;

use stanchion::machine::{self, clock, hint, sync::Arc, thread};
use stanchion::simulator::{Failure, Run, Simulation, machines};

use crate::{Buffer, End};

/// Entries that each thread puts or takes.
pub const ENTRIES: usize = 1_000;
/// The number of entries that the buffer has room for.
const ROOM: usize = 64;
/// The time that a thread computes for each entry, in nanoseconds, on the average.
pub const WORK: u64 = 400;
/// The time when all threads begin, in nanoseconds of virtual time: they have been made by then,
/// and sleep.
pub const BEGIN: u64 = 1_000_000;

/// Runs the buffer with as many threads as processors, on a machine of today. Returns how many
/// nanoseconds an entry took, from its being put to that of the next one, by any thread.
///
/// # Errors
///
/// The simulator's error for a run that does not end.
pub fn simulate<E>(processors: usize) -> Result<Run<f64>, Failure>
where
    E: Borrow<End> + Default + Send + Sync + 'static,
{
    Simulation::new(machines::modern(processors)).timeline().words(0).run(move || {
        let buffer = Arc::new(Buffer::<usize, ROOM, E>::new());
        let begin = clock::now().plus_nanos(BEGIN);
        buffer.label();
        let start = |number: usize| {
            let buffer = Arc::clone(&buffer);
            let puts = number.is_multiple_of(2);
            let name = format!("{} {}", if puts { "puts" } else { "takes" }, number / 2);
            let body = move || {
                thread::sleep(Duration::from_nanos(begin.nanos_since(clock::now())));
                for entry in 0..ENTRIES {
                    // Not always the same, or the threads would fall into step and never meet.
                    machine::work(WORK / 2 + hint::entropy() % WORK);
                    if puts {
                        buffer.put(entry);
                    } else {
                        buffer.take();
                    }
                }
            };
            thread::Builder::new().name(name).spawn(body).expect("there is room for a few threads")
        };
        let threads: Vec<_> = (0..processors).map(start).collect();
        for thread in threads {
            thread.join().expect("nobody panics");
        }
        clock::now().nanos_since(begin) as f64 / (processors / 2 * ENTRIES) as f64
    })
}
