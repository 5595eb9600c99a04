//! The reader-writer lock with real threads.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use lock_api::RawMutex;
use stanchion_alone::Sleepers;
use stanchion_competitive::policy::{AlwaysBlock, AlwaysSpin, LastThreeSamples};
use stanchion_competitive::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Policy, PolicyRwLock, RawPolicyMutex, RawRwLock,
    ReadRecursive, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, lock_api,
};
use static_assertions::{assert_impl_all, assert_not_impl_any, const_assert};

use crate::common::within;

assert_impl_all!(RwLock<u32>: Send, Sync, Default);
assert_impl_all!(RwLock<Cell<u32>>: Send);
assert_not_impl_any!(RwLock<Cell<u32>>: Sync);
assert_not_impl_any!(RwLock<std::rc::Rc<u32>>: Send, Sync);
assert_not_impl_any!(RwLock<std::sync::MutexGuard<'static, u32>>: Send, Sync);
// Readers are counted, and may go elsewhere with what may; a writer is the mutex's owner, and
// stays.
assert_impl_all!(RwLockReadGuard<'static, u32>: Send, Sync);
assert_not_impl_any!(RwLockReadGuard<'static, Cell<u32>>: Send, Sync);
assert_impl_all!(MappedRwLockReadGuard<'static, u32>: Send, Sync);
assert_not_impl_any!(MappedRwLockReadGuard<'static, Cell<u32>>: Send, Sync);
assert_impl_all!(RwLockWriteGuard<'static, u32>: Sync);
assert_not_impl_any!(RwLockWriteGuard<'static, u32>: Send);
assert_not_impl_any!(RwLockWriteGuard<'static, Cell<u32>>: Send, Sync);
assert_not_impl_any!(MappedRwLockWriteGuard<'static, u32>: Send);
assert_not_impl_any!(RwLockUpgradableReadGuard<'static, u32>: Send);
const_assert!(size_of::<RwLock<()>>() <= 28);

type RwLockUpgradableReadGuardOf<'a, P> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLock<RawPolicyMutex<P>>, (u64, u64)>;

/// Two halves that only a writer ever makes differ.
fn halves_agree<P: Policy + 'static>() {
    within(Duration::from_secs(60), || {
        const ROUNDS: u64 = 2_000;
        let lock = PolicyRwLock::<(u64, u64), P>::new((0, 0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut halves = lock.write();
                        halves.0 += 1;
                        std::hint::spin_loop();
                        halves.1 += 1;
                    }
                });
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let halves = lock.read();
                        assert_eq!(halves.0, halves.1);
                    }
                });
            }
            scope.spawn(|| {
                for round in 0..ROUNDS / 4 {
                    let timeout = Duration::from_micros(round % 40);
                    if let Some(mut halves) = lock.try_write_for(timeout) {
                        halves.0 += 1;
                        halves.1 += 1;
                    }
                    if let Some(halves) = lock.try_read_for(timeout) {
                        assert_eq!(halves.0, halves.1);
                    }
                    let halves = lock.upgradable_read();
                    let before = halves.0;
                    if let Ok(mut halves) =
                        RwLockUpgradableReadGuardOf::<P>::try_upgrade_for(halves, timeout)
                    {
                        assert_eq!(*halves, (before, before));
                        halves.0 += 1;
                        halves.1 += 1;
                        let halves = lock_api::RwLockWriteGuard::downgrade(halves);
                        assert_eq!(*halves, (before + 1, before + 1));
                    }
                }
            });
        });
        let (one, other) = lock.into_inner();
        assert!(one == other && one >= 2 * ROUNDS);
    });
}

#[test]
fn halves_agree_by_default() {
    halves_agree::<stanchion_competitive::policy::Adaptive>();
}

#[test]
fn halves_agree_when_waiters_block() {
    halves_agree::<AlwaysBlock>();
}

#[test]
fn halves_agree_when_waiters_spin() {
    halves_agree::<AlwaysSpin>();
}

#[test]
fn halves_agree_when_waiters_learn() {
    halves_agree::<LastThreeSamples>();
}

/// Readers that overlap for ever do not keep a writer out.
#[test]
fn writers_do_not_starve() {
    within(Duration::from_secs(60), || {
        let (lock, stop) = (RwLock::new(0), AtomicBool::new(false));
        let worst = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        let _reading = lock.read();
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
            }
            for _ in 0..20 {
                let start = Instant::now();
                *lock.write() += 1;
                worst.fetch_max(start.elapsed().as_millis() as u64, Relaxed);
            }
            stop.store(true, Relaxed);
        });
        assert!(worst.load(Relaxed) < 5_000, "a writer waited for {worst:?} ms");
    });
}

/// Nor do writers that come one after another keep readers out.
#[test]
fn readers_do_not_starve() {
    within(Duration::from_secs(60), || {
        let (lock, stop) = (RwLock::new(0_u64), AtomicBool::new(false));
        let worst = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        let mut writing = lock.write();
                        *writing += 1;
                        std::thread::sleep(Duration::from_micros(100));
                    }
                });
            }
            for _ in 0..20 {
                let start = Instant::now();
                std::hint::black_box(*lock.read());
                worst.fetch_max(start.elapsed().as_millis() as u64, Relaxed);
            }
            stop.store(true, Relaxed);
        });
        assert!(worst.load(Relaxed) < 5_000, "a reader waited for {worst:?} ms");
    });
}

/// Held to write, five readers come, released: all of them get in, at the same time.
#[test]
fn readers_alone_are_not_stuck() {
    within(Duration::from_secs(60), || {
        let lock = RwLock::new(());
        let (inside, all_in) = (AtomicUsize::new(0), Barrier::new(5));
        std::thread::scope(|scope| {
            let writing = lock.write();
            for _ in 0..5 {
                scope.spawn(|| {
                    let _reading = lock.read();
                    inside.fetch_add(1, Relaxed);
                    all_in.wait();
                });
            }
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(inside.load(Relaxed), 0);
            drop(writing);
        });
        assert_eq!(inside.load(Relaxed), 5);
    });
}

#[test]
fn deadlines_pass_and_leave_nothing_behind() {
    let lock = RwLock::new(1);
    let short = Duration::from_millis(2);
    let reading = lock.read();
    for timeout in [Duration::ZERO, short] {
        let start = Instant::now();
        assert!(lock.try_write_for(timeout).is_none());
        assert!(start.elapsed() >= timeout);
    }
    assert!(lock.try_write_until(Instant::now()).is_none());
    // The writer that gave up keeps no thread out.
    assert_eq!(*lock.try_read().expect("readers again"), 1);
    let upgradable = lock.try_upgradable_read_for(short).expect("beside a reader");
    let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, short) else {
        panic!("upgraded beside a reader");
    };
    assert_eq!(*lock.try_read_for(Duration::MAX).expect("readers again"), 1);
    drop(reading);
    let mut writing = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect("alone");
    *writing += 1;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.try_read_for(short).is_none());
            assert!(lock.try_upgradable_read_for(short).is_none());
            assert!(lock.try_write_for(short).is_none());
        });
    });
    let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writing);
    assert!(lock.try_read().is_some() && lock.try_write().is_none());
    drop(upgradable);
    assert_eq!(*lock.try_write_for(Duration::MAX).expect("free"), 2);
    assert!(!lock.is_locked());
}

#[test]
fn what_it_says_of_itself() {
    let lock = RwLock::new(());
    assert!(!lock.is_locked());
    let reading = lock.read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    // SAFETY: only asked.
    assert_eq!(unsafe { lock.raw() }.readers(), 1);
    drop(reading);
    let upgradable = lock.upgradable_read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    let writing = RwLockUpgradableReadGuard::upgrade(upgradable);
    assert!(lock.is_locked_exclusive());
    RwLockWriteGuard::unlock_fair(writing);
    assert!(!lock.is_locked());
}

#[test]
fn a_panic_while_it_is_held_releases_it() {
    let lock = RwLock::new(1);
    let writes = AssertUnwindSafe(|| {
        let _writing = lock.write();
        panic!("in the section");
    });
    assert!(catch_unwind(writes).is_err());
    let reads = AssertUnwindSafe(|| {
        let _reading = lock.read();
        panic!("in the section");
    });
    assert!(catch_unwind(reads).is_err());
    assert!(!lock.is_locked());
}

#[test]
fn writing_what_this_thread_writes_panics() {
    let lock = RwLock::new(1);
    let writing = lock.write();
    let upgradable: fn(&RwLock<i32>) = |lock| drop(lock.upgradable_read());
    let writes: fn(&RwLock<i32>) = |lock| drop(lock.write());
    for locks in [upgradable, writes] {
        let refused = catch_unwind(AssertUnwindSafe(|| locks(&lock))).unwrap_err();
        let message = refused.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains("this thread already holds"), "{message}");
    }
    drop(writing);
    assert_eq!(*lock.write(), 1);
}

/// A gate that panics when it is taken for the second time.
struct FaultyGate {
    /// The gate.
    gate: RawPolicyMutex,
    /// The number of calls of `lock`.
    calls: AtomicU64,
}

// SAFETY: it is the mutex inside.
unsafe impl RawMutex for FaultyGate {
    const INIT: Self = Self { gate: RawPolicyMutex::new(), calls: AtomicU64::new(0) };
    type Guard = <RawPolicyMutex as RawMutex>::Guard;

    fn lock(&self) -> Self::Guard {
        if self.calls.fetch_add(1, Relaxed) == 1 {
            // Prints nothing.
            resume_unwind(Box::new("the gate's"));
        }
        self.gate.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard> {
        self.gate.try_lock()
    }

    unsafe fn unlock(&self, guard: Self::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.unlock(guard) };
    }

    fn is_locked(&self) -> bool {
        self.gate.is_locked()
    }
}

/// A writer has left the gate to sleep, and panics when it takes it again. A reader that it kept
/// out gets in. A writer that was away for 10 ms keeps the gate, so this is tried again.
#[test]
fn a_writer_that_panics_at_the_gate_keeps_no_reader_out() {
    within(Duration::from_secs(60), || while !a_writer_panics_at_the_gate() {});
}

fn a_writer_panics_at_the_gate() -> bool {
    let lock = lock_api::RwLock::<RawRwLock<FaultyGate>, u32>::new(0);
    let panicked = std::thread::scope(|scope| {
        let reading = lock.read();
        let writer = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| *lock.write() += 1)).is_err());
        while lock.try_read().is_some() {
            std::thread::yield_now();
        }
        let reader = scope.spawn(|| *lock.read());
        // SAFETY: only asked.
        while unsafe { lock.raw() }.waiting_readers() == 0 {
            std::thread::yield_now();
        }
        // It is about to sleep, and would look once more.
        std::thread::sleep(Duration::from_millis(50));
        drop(reading);
        reader.join().unwrap();
        writer.join().unwrap()
    });
    assert_eq!(*lock.read(), u32::from(!panicked));
    assert!(lock.try_write().is_some(), "free again");
    panicked
}

/// Waits until so many readers sleep on the lock, or are about to.
fn until_readers_wait<T>(lock: &RwLock<T>, count: usize) {
    // SAFETY: only asked.
    while unsafe { lock.raw() }.waiting_readers() < count {
        std::thread::yield_now();
    }
}

/// A reader that sleeps because of a writer reads as soon as the lock can be read, whatever the
/// writer becomes. It stays beside what `becomes` returns.
fn a_sleeping_reader_gets_in_when<B: 'static>(
    lock: &'static RwLock<u32>,
    becomes: fn(RwLockWriteGuard<'static, u32>) -> B,
) {
    within(Duration::from_secs(60), move || {
        std::thread::scope(|scope| {
            let writing = lock.write();
            let reader = scope.spawn(|| *lock.read());
            until_readers_wait(lock, 1);
            let rest = becomes(writing);
            assert_eq!(reader.join().unwrap(), 1);
            drop(rest);
        });
        assert!(lock.try_write().is_some(), "free again");
    });
}

#[test]
fn a_sleeping_reader_gets_in_when_the_writer_becomes_upgradable() {
    static LOCK: RwLock<u32> = RwLock::new(1);
    a_sleeping_reader_gets_in_when(&LOCK, RwLockWriteGuard::downgrade_to_upgradable);
}

#[test]
fn a_sleeping_reader_gets_in_when_the_writer_becomes_a_reader() {
    static LOCK: RwLock<u32> = RwLock::new(1);
    a_sleeping_reader_gets_in_when(&LOCK, RwLockWriteGuard::downgrade);
}

/// As `with_upgraded`, on a guard that lives on: the writing ends, the upgradable guard does not.
#[test]
fn a_sleeping_reader_gets_in_when_a_writing_section_of_an_upgradable_reader_ends() {
    within(Duration::from_secs(60), || {
        let lock = RwLock::new(1);
        std::thread::scope(|scope| {
            let mut upgradable = lock.upgradable_read();
            let mut reader = None;
            upgradable.with_upgraded(|value| {
                *value = 2;
                reader = Some(scope.spawn(|| *lock.read()));
                until_readers_wait(&lock, 1);
            });
            let reader = reader.expect("spawned above");
            assert_eq!(reader.join().unwrap(), 2, "while the upgradable guard is alive");
            drop(upgradable);
        });
    });
}

/// The upgradable reader waits for the sleeping one: it must not wait for the end of the guard.
#[test]
fn a_sleeping_reader_gets_in_when_an_upgrade_gives_up() {
    within(Duration::from_secs(60), || {
        let lock = RwLock::new(1);
        std::thread::scope(|scope| {
            let reading = lock.read();
            let upgradable = lock.upgradable_read();
            let later = scope.spawn(|| {
                // Begins while the upgrade waits for the first reader.
                while lock.try_read().is_some() {
                    std::thread::yield_now();
                }
                *lock.read()
            });
            let mut upgradable = Some(upgradable);
            // The upgrade gives up, again and again, until the reader has come while it waited.
            while !later.is_finished() {
                let timeout = Duration::from_millis(20);
                let Err(back) =
                    RwLockUpgradableReadGuard::try_upgrade_for(upgradable.take().unwrap(), timeout)
                else {
                    panic!("upgraded beside a reader")
                };
                upgradable = Some(back);
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(later.join().unwrap(), 1);
            drop((reading, upgradable));
        });
    });
}

/// Twenty readers that have slept for 10 ms are in together, although a writer waits behind the one
/// that leaves.
#[test]
fn a_writer_lets_all_readers_in_that_slept_long() {
    const READERS: usize = 20;
    within(Duration::from_secs(60), || {
        let lock = RwLock::new(0);
        let (all_in, waiters) = (Barrier::new(READERS), Sleepers::new());
        std::thread::scope(|scope| {
            let writing = lock.write();
            for _ in 0..READERS {
                scope.spawn(|| {
                    waiters.arrive();
                    let reading = lock.read();
                    // Passes only when all the others read at the same time.
                    all_in.wait();
                    assert_eq!(*reading, 0);
                });
            }
            waiters.until_asleep(READERS);
            std::thread::sleep(Duration::from_millis(10));
            let writer = scope.spawn(|| *lock.write() += 1);
            drop(writing);
            writer.join().unwrap();
        });
        assert_eq!(*lock.read(), 1);
    });
}

/// Readers that come and go do not get in the way of an upgradable reader.
#[test]
fn try_upgradable_read_succeeds_beside_readers() {
    within(Duration::from_secs(60), || {
        let (lock, stop) = (RwLock::new(1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        assert_eq!(*lock.read(), 1);
                    }
                });
            }
            for round in 0..20_000 {
                let upgradable = lock.try_upgradable_read();
                if upgradable.is_none() {
                    stop.store(true, Relaxed);
                }
                assert!(upgradable.is_some(), "refused in round {round}");
            }
            stop.store(true, Relaxed);
        });
    });
}

/// Readers that give up beside others that stay: the count of waiting readers ends at zero.
#[test]
fn readers_that_give_up_leave_the_others_waiting() {
    within(Duration::from_secs(60), || {
        let lock = RwLock::new(1);
        std::thread::scope(|scope| {
            let writing = lock.write();
            let patient: Vec<_> = (0..3).map(|_| scope.spawn(|| *lock.read())).collect();
            until_readers_wait(&lock, 3);
            let hasty: Vec<_> = (0..5)
                .map(|_| scope.spawn(|| lock.try_read_for(Duration::from_millis(5)).is_none()))
                .collect();
            for reader in hasty {
                assert!(reader.join().unwrap(), "a writer holds the lock");
            }
            // SAFETY: only asked.
            assert_eq!(unsafe { lock.raw() }.waiting_readers(), 3);
            drop(writing);
            for reader in patient {
                assert_eq!(reader.join().unwrap(), 1);
            }
        });
        // SAFETY: only asked.
        assert_eq!(unsafe { lock.raw() }.waiting_readers(), 0);
    });
}

/// A thread that reads reads again, although a writer waits for it.
#[test]
fn read_recursive_does_not_wait_behind_a_writer_that_waits() {
    within(Duration::from_secs(60), || {
        let lock = RwLock::new(1);
        std::thread::scope(|scope| {
            let outer = lock.read();
            let writer = scope.spawn(|| *lock.write() += 1);
            while lock.try_read().is_some() {
                std::thread::yield_now();
            }
            assert!(lock.try_read().is_none(), "a plain read waits");
            let inner = lock.read_recursive();
            let third = lock.try_read_recursive().expect("beside a reader");
            assert_eq!(*outer + *inner + *third, 3);
            drop((outer, inner, third));
            writer.join().unwrap();
        });
        let writing = lock.write();
        assert!(lock.try_read_recursive().is_none(), "a writer writes");
        drop(writing);
        assert_eq!(*lock.read_recursive(), 2);
    });
}

#[test]
fn a_forgotten_reader_keeps_writers_out_and_no_more() {
    let lock = RwLock::new(1);
    std::mem::forget(lock.read());
    assert!(lock.try_write().is_none());
    assert!(lock.try_write_for(Duration::from_millis(2)).is_none());
    assert_eq!(*lock.read(), 1);
}

#[test]
fn a_read_guard_goes_to_another_thread() {
    let lock = RwLock::new(3);
    let reading = lock.read();
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(*reading, 3));
    });
    assert!(lock.try_write().is_some());
}
