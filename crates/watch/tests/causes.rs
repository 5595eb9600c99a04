//! The three planted causes are told apart, by the kernel's counts and by switch records.
#![cfg(all(target_os = "linux", feature = "tokio"))]

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::presence;
use stanchion_watch::{Cause, Means, Stall, State, TokioHooks, Watch};
use tokio::runtime::{Builder, Runtime};

#[path = "../examples/plants/mod.rs"]
mod plants;

use plants::{BUSY, Planted, keep_busy};

/// The arguments that make this program run [`busy_process`] alone.
const ARGUMENTS: [&str; 3] = ["busy_process", "--exact", "--nocapture"];
/// The time after which a cause that was not told will not be told.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of samples in a row that must tell the cause.
const TELLINGS: usize = 3;

/// Not a test of its own: keeps a processor busy, in a process that a test starts.
#[test]
fn busy_process() {
    if std::env::var_os(BUSY).is_some() {
        keep_busy();
    }
}

/// Starts a runtime of two workers, and waits until both have parked.
fn runtime(watch: &Watch) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(2).build().unwrap();
    let mut sampler = watch.sampler();
    while sampler.sample().workers.len() < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    runtime
}

/// Returns the time that a thread has run, by the scheduler's count.
fn has_run(thread: u32) -> Duration {
    let times = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
    Duration::from_nanos(times.split_once(' ').unwrap().0.parse().unwrap())
}

/// Samples until the stall has been told in [`TELLINGS`] samples in a row for `cause`. Another
/// cause fails, with one exception: a task that computes is told as preempted if other programs
/// take more than three quarters of its processor. Then the scheduler's count must say so too.
/// Returns the last stall.
fn told(watch: &Watch, cause: Cause, means: Means) -> Stall {
    let mut sampler = watch.sampler();
    let began = Instant::now();
    let mut tellings = 0;
    let mut taken_away: Option<(u32, Instant, Duration)> = None;
    loop {
        assert!(began.elapsed() < PATIENCE, "{cause} was not told");
        thread::sleep(Duration::from_millis(50));
        let sample = sampler.sample();
        assert_eq!(sample.workers.len(), 2, "{sample:#?}");
        let lasting: Vec<_> = sample.stalls().filter(|(_, stall)| !stall.is_over).collect();
        assert!(lasting.len() < 2, "one worker has the task: {sample:#?}");
        let Some(&(worker, &stall)) = lasting.first() else { continue };
        if (cause, stall.cause) == (Cause::Computing, Cause::Preempted) {
            tellings = 0;
            let thread = worker.thread.unwrap();
            let now = (Instant::now(), has_run(thread));
            let (_, since, run) = *taken_away.get_or_insert((thread, now.0, now.1));
            let elapsed = now.0 - since;
            if elapsed > Duration::from_secs(2) && now.1 - run < elapsed / 3 {
                eprintln!("other programs have the processors: {sample}");
                return stall;
            }
            continue;
        }
        assert_eq!(stall.cause, cause, "{sample}\n{sample:#?}");
        assert_eq!(worker.means, means, "{sample:#?}");
        let is_state = match worker.state {
            State::Blocked(place) => {
                assert_eq!(place.name(), Some("read"), "{sample:#?}");
                cause == Cause::Blocked
            }
            State::Running | State::Ready => cause != Cause::Blocked,
            _ => false,
        };
        assert!(is_state, "{sample:#?}");
        tellings += 1;
        if tellings == TELLINGS {
            return stall;
        }
    }
}

/// Plants each cause in turn. One test at a time: a task that computes takes a processor.
fn plant_all(with_records: bool, means: Means) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let watch =
        Watch::builder().threshold(Duration::from_millis(100)).switch_records(with_records).build();
    for cause in [Cause::Blocked, Cause::Computing, Cause::Preempted] {
        let runtime = runtime(&watch);
        let planted = Planted::spawn(&runtime, cause, &ARGUMENTS).unwrap();
        let stall = told(&watch, cause, means);
        assert!(stall.awake >= Duration::from_millis(100), "{stall}");
        let place = stall.blocked_in.and_then(|place| place.name());
        assert_eq!(place, (cause == Cause::Blocked).then_some("read"), "{stall}");
        planted.end(&runtime);
        drop(runtime);
        assert!(watch.sampler().sample().workers.is_empty());
    }
}

#[test]
fn causes_are_told_apart_by_the_kernels_counts() {
    plant_all(false, Means::Counts);
}

#[test]
fn causes_are_told_apart_by_switch_records() {
    match presence::status() {
        Ok(()) => plant_all(true, Means::SwitchRecords),
        // The kernel does not keep them for this user. The other test is what there is.
        Err(refused) => eprintln!("no switch records: {refused}"),
    }
}
