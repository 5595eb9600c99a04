//! The reader-writer lock on a simulated machine: a reader beside a writer that takes it again at
//! once.

use stanchion_competitive_simulated::RwLock;
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{clock, thread};
use stanchion_simulator::{Simulation, Time, machines};

/// The time for which a writer has the lock.
const SECTION_NS: u64 = 50_000;

/// A reader is woken in vain again and again: the writer is there first. After 10 ms the writer
/// lets it in.
#[test]
fn a_reader_beside_a_writer_gets_in_after_ten_milliseconds() {
    let run = Simulation::new(machines::modern(2)).time(Time::millis(500)).run(|| {
        let lock = Arc::new(RwLock::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = {
            let (lock, is_over) = (lock.clone(), is_over.clone());
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut count = lock.write();
                    stanchion_machine::work(SECTION_NS);
                    *count += 1;
                }
            })
        };
        let waits = [(); 4].map(|()| {
            stanchion_machine::work(20 * SECTION_NS);
            let began = clock::now();
            drop(lock.read());
            clock::now().nanos_since(began)
        });
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        // The rest of the section in which the 10 ms end, and the reader's way to the lock.
        let least = 10_000_000;
        let most = least + 2 * SECTION_NS;
        assert!(waits.iter().all(|wait| (least..most).contains(wait)), "{waits:?}");
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}
