//! The recorder with real threads: every contended wait is counted once, under its name, and
//! nothing else is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use stanchion_competitive::policy::{
    AlwaysBlock, AlwaysSpin, Contention, Policy, RandomWalk, Wait,
};
use stanchion_competitive::waits::{
    self, Distribution, MAX_LENGTH_NS, NAMES, OTHERS, Observation, Record, Recorder, SLOTS,
    Waits as _,
};
use stanchion_competitive::{PolicyMutex, RawPolicyMutex};

/// A policy that counts the waits that it gets.
struct Told {
    /// The number of waits.
    waits: AtomicU64,
    /// The longest wait.
    longest: AtomicU64,
}

impl Policy for Told {
    const INIT: Self = Self { waits: AtomicU64::new(0), longest: AtomicU64::new(0) };

    fn threshold(&self, contention: &Contention) -> u64 {
        contention.cost()
    }

    fn adjust(&self, wait: &Wait) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(wait.length(), Ordering::Relaxed);
    }
}

/// A policy that spins for ever, and counts the threads that wait.
struct Announced(AtomicU64);

impl Policy for Announced {
    const INIT: Self = Self(AtomicU64::new(0));

    fn threshold(&self, _contention: &Contention) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        u64::MAX
    }
}

fn recorded<P: Policy>(name: &'static str) -> PolicyMutex<u64, Recorder<P>> {
    PolicyMutex::from_raw(RawPolicyMutex::with_policy(Recorder::with_policy(name, P::INIT)), 0)
}

/// Threads that lock `mutex` over and over. Now and then one sleeps inside, so that another must
/// wait however busy the machine is.
fn contend<P: Policy>(mutex: &PolicyMutex<u64, P>, threads: u64, times: u64) {
    let before = *mutex.lock();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for round in 0..times {
                    let mut count = mutex.lock();
                    *count += 1;
                    if round % 64 == 63 {
                        thread::sleep(Duration::from_micros(100));
                    }
                }
            });
        }
    });
    assert_eq!(*mutex.lock(), before + threads * times);
}

/// [`contend`] until a wait was recorded: on a busy computer threads may go a whole round without
/// meeting.
fn meet<P: Policy>(mutex: &PolicyMutex<u64, Recorder<P>>, threads: u64, times: u64) {
    let met = (0..1_000).any(|_| {
        contend(mutex, threads, times);
        mutex.waits().count() > 0
    });
    assert!(met, "no wait was recorded");
}

#[test]
fn it_counts_what_the_policy_is_told() {
    let mutex = recorded::<Told>("told");
    contend(&mutex, 4, 2_000);
    let waits = mutex.waits();
    // SAFETY: only the policy is looked at.
    let told = unsafe { mutex.raw() }.policy().policy();
    assert!(waits.count() > 0, "four threads, and none had to wait");
    assert_eq!(waits.count(), told.waits.load(Ordering::Relaxed));
    assert_eq!(waits.max_ns(), told.longest.load(Ordering::Relaxed).min(MAX_LENGTH_NS));
    assert_eq!(waits.arrivals().iter().sum::<u64>(), waits.count());
    assert_eq!(waits::snapshot().lock("told"), Some(&waits));
}

#[test]
fn a_lock_without_contention_takes_no_place_and_no_name() {
    let mutex = recorded::<RandomWalk>("no other thread wants it");
    (0..1_000).for_each(|_| *mutex.lock() += 1);
    assert_eq!(mutex.waits().count(), 0);
    assert_eq!(waits::snapshot().lock("no other thread wants it"), None);
}

#[test]
fn spun_and_blocked_are_told_apart() {
    let spun = recorded::<AlwaysSpin>("spun");
    meet(&spun, 2, 300);
    assert_eq!(spun.waits().blocked(), 0);
    assert!(spun.waits().spun() > 0);

    let blocked = recorded::<AlwaysBlock>("blocked");
    thread::scope(|scope| {
        let held = blocked.lock();
        scope.spawn(|| *blocked.lock() += 1);
        // Long enough for a thread to start and to sleep on a busy machine.
        thread::sleep(Duration::from_millis(300));
        drop(held);
    });
    let waits = blocked.waits();
    assert_eq!((waits.count(), waits.blocked()), (1, 1));
    assert!(waits.max_ns() > 5_000_000, "{}", waits.max_ns());
    assert!(waits.spun_ns() < waits.total_ns() / 2, "{} of {}", waits.spun_ns(), waits.total_ns());
    assert_eq!(waits.wake_latencies().map(|(_, count)| count).sum::<u64>(), 1);
    assert_eq!(waits.arrivals()[0], 1);
}

#[test]
fn the_record_outlives_the_lock_and_locks_of_one_name_are_one() {
    let mut counted = 0;
    for round in 0..5 {
        let [one, two] = [(); 2].map(|()| recorded::<RandomWalk>("twins"));
        meet(&one, 3, 300);
        meet(&two, 3, 300);
        counted += one.waits().count() + two.waits().count();
        assert_eq!(
            waits::snapshot().lock("twins").map(Distribution::count),
            Some(counted),
            "{round}"
        );
    }
    let all = waits::snapshot();
    assert_eq!(all.lock("twins").map(Distribution::count), Some(counted));
}

#[test]
fn a_lock_that_shares_its_slot_counts_all_the_same() {
    let met = |lock: &PolicyMutex<u64, Recorder<RandomWalk>>| meet(lock, 3, 200);
    // Their slots lie before those of the crowd, and come free before its last locks want one.
    let before: Vec<_> = (0..4).map(|_| recorded::<RandomWalk>("before the crowd")).collect();
    before.iter().for_each(met);
    // More of one name than may have a slot each.
    let locks: Vec<_> = (0..20).map(|_| recorded::<RandomWalk>("crowd")).collect();
    locks[..16].iter().for_each(met);
    drop(before);
    locks[16..].iter().for_each(met);
    let [own, shared] = [0..16, 16..20]
        .map(|range| locks[range].iter().map(|lock| lock.waits().count()).collect::<Vec<_>>());
    assert!(shared.windows(2).all(|pair| pair[0] == pair[1]), "one slot: {shared:?}");
    let expected = own.iter().sum::<u64>() + shared[0];
    assert_eq!(waits::snapshot().lock("crowd").map(Distribution::count), Some(expected));
    drop(locks);
    assert_eq!(waits::snapshot().lock("crowd").map(Distribution::count), Some(expected));
}

#[test]
fn records_are_added_to_from_everywhere_and_read_meanwhile() {
    let record = Record::register("from everywhere");
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                for index in 0..50_000 {
                    record.add(&Observation {
                        length_ns: index * 97 % 1_000_000,
                        blocked: index % 3 == thread % 3,
                        wake_latency_ns: Some(index % 9_000),
                        others: (index % 20) as u32,
                        ..Observation::default()
                    });
                }
            });
        }
        let mut seen = 0;
        for _ in 0..50 {
            let waits = record.waits();
            assert!(waits.count() >= seen);
            seen = waits.count();
            assert!(waits.arrivals().iter().sum::<u64>() <= waits.count());
        }
    });
    let waits = record.waits();
    assert_eq!(waits.count(), 200_000);
    assert_eq!(waits.arrivals()[16], 4 * 50_000 * 4 / 20);
    assert_eq!(
        waits.total_ns(),
        4 * (0..50_000_u64).map(|index| index * 97 % 1_000_000).sum::<u64>()
    );
    assert_eq!(Record::from_bits(record.to_bits()).map(Record::waits), Some(waits));
    assert!(Record::from_bits(0).is_none() && Record::from_bits(u32::MAX).is_none());
}

#[test]
fn a_clock_that_steps_does_no_harm() {
    let record = Record::register("stepping clock");
    for length_ns in [0, u64::MAX, MAX_LENGTH_NS + 1] {
        record.add(&Observation {
            length_ns,
            spun_ns: u64::MAX,
            blocked: true,
            wake_latency_ns: Some(u64::MAX),
            others: u32::MAX,
            holder_changes: u32::MAX,
        });
    }
    let waits = record.waits();
    assert_eq!((waits.count(), waits.max_ns()), (3, MAX_LENGTH_NS));
    assert_eq!(waits.total_ns(), 2 * MAX_LENGTH_NS);
    assert_eq!(waits.spun_ns(), 2 * MAX_LENGTH_NS);
    assert_eq!(waits.quantile_ns(1.0), Some(MAX_LENGTH_NS));
}

#[test]
fn long_and_empty_names_are_cut_and_filled() {
    let long = "ä".repeat(100);
    let kept = waits::intern(&long);
    assert_eq!(kept, "ä".repeat(60));
    assert_eq!(waits::intern(&long).as_ptr(), kept.as_ptr(), "kept once");
    assert_eq!(waits::intern(""), waits::UNNAMED);
    assert_eq!(waits::intern(OTHERS), OTHERS);
}

#[test]
fn adding_distributions_of_different_units_is_refused_by_name() {
    let mut one = Distribution::new(400);
    let refused = one.merge(&Distribution::new(401)).unwrap_err();
    assert_eq!((refused.ours, refused.theirs), (400, 401));
    let message = refused.to_string();
    assert!(message.contains("400 ns") && message.contains("401 ns"), "{message}");
}

#[test]
fn a_recorded_mutex_is_as_large_as_its_docs_say() {
    let grown = 8 + size_of::<&str>();
    assert_eq!(
        size_of::<RawPolicyMutex<Recorder<RandomWalk>>>(),
        size_of::<RawPolicyMutex<RandomWalk>>() + grown
    );
}

/// The table is the process's, so what fills it runs in a process of its own.
#[test]
fn more_names_and_locks_than_the_table() {
    stanchion_alone::alone("more_names_and_locks_than_the_table", fill_the_table);
}

fn fill_the_table() {
    // More locks than slots, of few names.
    let names: Vec<_> = (0..100).map(|index| waits::intern(&format!("few {index}"))).collect();
    let locks: Vec<_> =
        (0..SLOTS + 100).map(|index| recorded::<Announced>(names[index % names.len()])).collect();
    let wait_once = |lock: &PolicyMutex<u64, Recorder<Announced>>| {
        // SAFETY: only the policy is looked at.
        let waiting = &unsafe { lock.raw() }.policy().policy().0;
        thread::scope(|scope| {
            let held = lock.lock();
            scope.spawn(|| drop(lock.lock()));
            while waiting.load(Ordering::Relaxed) == 0 {
                // Beside busy processes a thread that yields waits for a whole turn of theirs.
                thread::sleep(Duration::from_micros(20));
            }
            drop(held);
        });
    };
    locks.iter().for_each(wait_once);
    let recording = waits::snapshot();
    assert_eq!(recording.locks.len(), names.len());
    assert_eq!(recording.all().count(), locks.len() as u64);
    assert_eq!(recording.overflow, 0);

    // More names than the table has.
    for index in 0..NAMES {
        let record = Record::register(&format!("many {index}"));
        record.add(&Observation { length_ns: 1_000, ..Observation::default() });
    }
    let late = recorded::<Announced>("too late for a name");
    wait_once(&late);
    let recording = waits::snapshot();
    assert_eq!(recording.locks.len(), NAMES + 1);
    assert_eq!(recording.overflow, names.len() as u64 + 1);
    assert_eq!(recording.lock(OTHERS).map(Distribution::count), Some(recording.overflow));
    assert_eq!(recording.all().count(), (locks.len() + NAMES + 1) as u64);
    assert_eq!(waits::intern("one more"), OTHERS);
    assert!(recording.table().contains("found the table of names full"));

    drop(locks);
    assert_eq!(waits::snapshot().all(), recording.all(), "nothing is lost with the locks");
    waits::restart();
    let after = waits::snapshot();
    assert_eq!((after.locks.len(), after.overflow), (0, 0));
    // Slots have come back.
    let next = recorded::<Announced>("few 0");
    wait_once(&next);
    assert_eq!(next.waits().count(), 1);
}
