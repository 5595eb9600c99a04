//! Workers with switch records, where the kernel keeps them for this user.
#![cfg(target_os = "linux")]

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use stanchion_machine::presence;
use stanchion_watch::{Entered, Means, Sampler, Watch, WorkerSample};

/// Something to do for a worker.
type Work = Box<dyn FnOnce(&Entered) + Send>;

/// A worker that does what it is told.
struct Told {
    /// Tells it what to do next.
    tell: Sender<Work>,
    /// Says that it is done.
    done: Receiver<()>,
}

impl Told {
    /// Starts a thread that enters the watch, and parks when it has nothing to do.
    fn start(watch: &Watch) -> Self {
        let (tell, told) = mpsc::channel::<Work>();
        let (tell_done, done) = mpsc::channel();
        let watch = watch.clone();
        thread::spawn(move || {
            let worker = watch.enter("told");
            worker.park();
            tell_done.send(()).unwrap();
            for work in told {
                worker.unpark();
                work(&worker);
                worker.park();
                tell_done.send(()).unwrap();
            }
        });
        done.recv().unwrap();
        Self { tell, done }
    }

    /// Lets it do something, and waits until it has parked.
    fn work(&self, work: impl FnOnce(&Entered) + Send + 'static) {
        self.tell.send(Box::new(work)).unwrap();
        self.done.recv().unwrap();
    }
}

/// Samples the only worker.
fn only(sampler: &mut Sampler) -> WorkerSample {
    let mut workers = sampler.sample().workers;
    assert_eq!(workers.len(), 1, "{workers:#?}");
    workers.remove(0)
}

/// Returns a watch with switch records, if there are any here.
fn recording() -> Option<Watch> {
    match presence::status() {
        Ok(()) => Some(Watch::builder().switch_records(true).build()),
        Err(refused) => {
            eprintln!("no switch records: {refused}");
            None
        }
    }
}

#[test]
fn blocks_are_told_from_parks_between_two_looks() {
    const TIMES: u32 = 20;
    const SLEEP: Duration = Duration::from_millis(3);
    let Some(watch) = recording() else { return };
    let worker = Told::start(&watch);
    let mut sampler = watch.sampler();
    for _ in 0..TIMES {
        worker.work(|entered| {
            thread::sleep(SLEEP);
            entered.park();
            thread::sleep(SLEEP);
            entered.unpark();
        });
    }
    let seen = only(&mut sampler);
    assert_eq!(seen.means, Means::SwitchRecords, "{seen:#?}");
    assert_eq!(seen.parks, 2 * u64::from(TIMES), "{seen:#?}");
    // A sleep is at least as long, and seldom are other programs on the processor meanwhile.
    assert!(seen.parts.blocked > TIMES * SLEEP / 2, "{seen:#?}");
    assert!(seen.parked >= TIMES * SLEEP, "{seen:#?}");
}

#[test]
fn the_kernels_counts_are_used_where_records_were_overwritten() {
    let Some(watch) = recording() else { return };
    let worker = Told::start(&watch);
    let mut sampler = watch.sampler();
    // Two records for each sleep, of which the ring keeps some 250.
    worker.work(|_| (0..300).for_each(|_| thread::sleep(Duration::from_micros(50))));
    let seen = only(&mut sampler);
    assert_eq!(seen.means, Means::Counts, "{seen:#?}");
    assert!(seen.parts.total() > Duration::ZERO, "{seen:#?}");

    worker.work(|_| thread::sleep(Duration::from_millis(1)));
    let seen = only(&mut sampler);
    assert_eq!(seen.means, Means::SwitchRecords, "{seen:#?}");
}
