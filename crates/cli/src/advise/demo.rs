//! A small program with locks that differ. It shows what `advise` says, before any program is
//! recorded.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use stanchion_competitive::policy::FixedSpin;
use stanchion_competitive::waits::{self, Recorder, Recording};
use stanchion_competitive::{PolicyMutex, RawPolicyMutex};

/// The time for which it runs.
pub(crate) const TIME: Duration = Duration::from_secs(2);
/// The number of its threads: more than the processors of a small machine, so that some waits are
/// for a thread that was preempted.
pub(crate) const THREADS: u64 = 4;

type Recorded = PolicyMutex<u64, Recorder<FixedSpin>>;

const fn recorded(name: &'static str) -> Recorded {
    PolicyMutex::from_raw(
        RawPolicyMutex::with_policy(Recorder::with_policy(name, FixedSpin::new())),
        0,
    )
}

/// Held for 300 ns or so, all the time.
static SHORT: Recorded = recorded("short sections");
/// Held for 150 µs, now and then.
static LONG: Recorded = recorded("long sections");
/// Held for 500 ns mostly, for 60 µs every tenth time.
static MIXED: Recorded = recorded("mixed sections");

/// Runs it and says what the waits were.
pub(crate) fn record() -> Recording {
    waits::restart();
    let end = Instant::now() + TIME;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut turn = thread;
                while Instant::now() < end {
                    round(turn);
                    turn += 1;
                }
            });
        }
    });
    let mut recording = waits::snapshot();
    recording.program = "demo".to_owned();
    recording
}

fn round(turn: u64) {
    for _ in 0..40 {
        hold(&SHORT, 300);
        busy(300);
    }
    for step in 0..10 {
        let long = (turn + step).is_multiple_of(10);
        hold(&MIXED, if long { 60_000 } else { 500 });
        busy(2_000);
    }
    hold(&LONG, 150_000);
    busy(100_000);
}

fn hold(lock: &Recorded, nanos: u64) {
    let mut count = lock.lock();
    *count += 1;
    busy(nanos);
}

fn busy(nanos: u64) {
    let began = Instant::now();
    while began.elapsed().as_nanos() < nanos.into() {
        hint::spin_loop();
    }
}
