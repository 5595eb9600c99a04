//! The mutex at its edges: policies that panic, threads that end with the lock, the order of
//! hand-overs, and the bounds of its types.

use core::cell::RefCell;
use core::time::Duration;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use crate::payload::{in_time, shared};
use lock_api::{RawMutex, RawMutexTimed};
use stanchion_alone::Sleepers;
use stanchion_competitive::policy::{
    Adaptive, AlwaysBlock, Contention, OptimalOnlineApproximation, Policy, Wait,
};
use stanchion_competitive::{Mutex, MutexGuard, PolicyMutex, PolicyMutexGuard, RawPolicyMutex};

/// A policy that lists its callers, blocks at once, and panics for the first caller at `WHERE`.
struct Faulty<const WHERE: u8> {
    /// The waiters that are about to block.
    waiters: Sleepers,
    /// Set once it has panicked.
    panicked: AtomicBool,
}

const NOWHERE: u8 = 0;
const AT_ONCE: u8 = 1;
const WHEN_WOKEN: u8 = 2;
const WHILE_SPINNING: u8 = 3;
const AT_THE_END: u8 = 4;

impl<const WHERE: u8> Faulty<WHERE> {
    fn panics_if(&self, wrong: bool) {
        if wrong && !self.panicked.swap(true, Relaxed) {
            // Prints nothing.
            resume_unwind(Box::new("the policy's"));
        }
    }
}

impl<const WHERE: u8> Policy for Faulty<WHERE> {
    const INIT: Self = Self { waiters: Sleepers::new(), panicked: AtomicBool::new(false) };

    fn threshold(&self, contention: &Contention) -> u64 {
        self.panics_if(WHERE == AT_ONCE || WHERE == WHEN_WOKEN && contention.blocks() > 0);
        self.waiters.arrive();
        if WHERE == WHILE_SPINNING { 50_000 } else { 0 }
    }

    fn keep_spinning(&self, _contention: &Contention) -> bool {
        self.panics_if(WHERE == WHILE_SPINNING);
        true
    }

    fn adjust(&self, _wait: &Wait) {
        self.panics_if(WHERE == AT_THE_END);
    }

    fn name(&self) -> Option<&str> {
        Some("a faulty one")
    }
}

/// Returns when `count` threads have gone to sleep on the lock.
fn wait_for_sleepers<const WHERE: u8>(
    mutex: &PolicyMutex<impl Sized, Faulty<WHERE>>,
    count: usize,
) {
    // SAFETY: only looks.
    unsafe { mutex.raw() }.policy().waiters.until_asleep(count);
}

/// One of four waiters meets the panic. It gets nothing and takes nothing along: the other three
/// have the lock, and it is free in the end.
fn a_policy_panics<const WHERE: u8>(fair: bool) {
    in_time(move || {
        let mutex = shared::<Faulty<WHERE>>();
        let held = mutex.lock();
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    catch_unwind(AssertUnwindSafe(|| mutex.lock().bump())).is_ok()
                })
            })
            .collect();
        wait_for_sleepers(&mutex, if WHERE == AT_ONCE { 3 } else { 4 });
        if WHERE == WHEN_WOKEN {
            // Wakes the first, which finds the lock held again, and may be handed it as it asks
            // what to do.
            drop(held);
            for _ in 0..3 {
                let mut held = mutex.lock();
                stanchion_machine::wait::delay(20_000);
                lock_api::MutexGuard::bump(&mut held);
                drop(held);
            }
        } else if fair {
            lock_api::MutexGuard::unlock_fair(held);
        } else {
            drop(held);
        }
        let had = waiters.into_iter().map(|waiter| waiter.join().unwrap());
        let had = had.filter(|had| *had).count() as u64;
        // SAFETY: only looks.
        let panicked = unsafe { mutex.raw() }.policy().panicked.load(Relaxed);
        assert_eq!(had, 4 - u64::from(panicked));
        // Whether anyone is woken in vain is up to the machine.
        assert!(panicked || WHERE == WHEN_WOKEN);
        assert_eq!(mutex.try_lock().expect("everyone is done").count(), had);
    });
}

#[test]
fn a_policy_that_panics_takes_nothing_along() {
    for fair in [false, true] {
        a_policy_panics::<AT_ONCE>(fair);
        a_policy_panics::<WHEN_WOKEN>(fair);
        a_policy_panics::<WHILE_SPINNING>(fair);
        a_policy_panics::<AT_THE_END>(fair);
    }
}

#[test]
fn who_waits_for_itself_is_told_for_which_lock() {
    let mutex = PolicyMutex::<_, Faulty<NOWHERE>>::new(0);
    let held = mutex.lock();
    let told = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).unwrap_err();
    assert!(told.downcast_ref::<String>().expect("a message").contains("`a faulty one`"));
    drop(held);
    assert!(!mutex.is_locked());
}

/// A thread that ended with the lock held: no other thread has it, not even one with the same
/// number. That thread gets an error with the reason.
#[test]
fn a_thread_that_ends_with_the_lock_keeps_it() {
    // Another test's thread may take the number first and keep it for long: then a new lock is
    // left locked by another thread.
    let met = (0..500).any(|_| {
        let mutex = shared::<AlwaysBlock>();
        let ending = mutex.clone();
        thread::spawn(move || mem::forget(ending.lock())).join().unwrap();
        // SAFETY: only looks.
        let number = unsafe { mutex.raw() }.holder().expect("held by a thread with a number");
        let met = (0..20).any(|_| a_new_thread_has(number, &mutex));
        assert!(mutex.is_locked());
        met
    });
    assert!(met, "no number was used again");
}

/// Lets a new thread try a lock that is left locked. Returns whether that thread has this number.
fn a_new_thread_has(
    number: usize,
    mutex: &Arc<PolicyMutex<crate::payload::Pair, AlwaysBlock>>,
) -> bool {
    let mutex = mutex.clone();
    let next = thread::spawn(move || {
        let same = stanchion_machine::thread::index() == Some(number);
        if same {
            let told = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).unwrap_err();
            let told = told.downcast_ref::<String>().expect("a message");
            assert!(told.contains("or one that ended without releasing it"), "{told}");
        }
        assert!(mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(Duration::from_micros(50)).is_none());
        same
    });
    next.join().unwrap()
}

/// If every release is in turn, sleepers are handed the lock in the order in which they came, and
/// no other thread gets in between.
#[test]
fn releases_in_turn_serve_in_order() {
    in_time(|| {
        let mutex = Arc::new(PolicyMutex::<_, Faulty<NOWHERE>>::new(Vec::new()));
        let tried = Arc::new(AtomicBool::new(false));
        let held = mutex.lock();
        let waiters: Vec<_> = (0..4)
            .map(|turn| {
                let waiter = {
                    let (mutex, tried) = (mutex.clone(), tried.clone());
                    thread::spawn(move || {
                        let mut turns = mutex.lock();
                        turns.push(turn);
                        while !tried.load(Relaxed) {
                            thread::yield_now();
                        }
                        lock_api::MutexGuard::unlock_fair(turns);
                    })
                };
                wait_for_sleepers(&mutex, turn + 1);
                waiter
            })
            .collect();
        lock_api::MutexGuard::unlock_fair(held);
        let barged = mutex.try_lock().is_some();
        tried.store(true, Relaxed);
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert!(!barged, "released in turn, and had by another");
        assert_eq!(*mutex.lock(), [0, 1, 2, 3]);
    });
}

/// A sleeper that has waited for 10 ms is handed the lock by the next release, though it does not
/// run: the thread that released it cannot take it again.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "of signals")]
fn a_sleeper_of_ten_milliseconds_is_handed_the_lock() {
    use std::os::unix::thread::JoinHandleExt;

    /// Set while the sleepers stall.
    static STALLED: AtomicBool = AtomicBool::new(false);

    extern "C" fn stalls(_signal: libc::c_int) {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        while STALLED.load(Relaxed) {
            // SAFETY: async-signal-safe by POSIX; `time` outlives the call. Its effect on `errno`
            // does not matter: a wait looks again.
            unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
        }
    }
    let handler: extern "C" fn(libc::c_int) = stalls;
    // SAFETY: the handler calls nothing but `nanosleep`, and no other test of this program uses the
    // signal.
    unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
    // Once in a while another lock that shares the bucket has had its turn less than 5 ms ago, and
    // then this one is not handed over.
    in_time(|| {
        let mut handed = 0;
        while handed < 3 {
            let mutex = Arc::new(PolicyMutex::<_, Faulty<NOWHERE>>::new(()));
            let held = mutex.lock();
            let sleeper = {
                let mutex = mutex.clone();
                thread::spawn(move || drop(mutex.lock()))
            };
            wait_for_sleepers(&mutex, 1);
            STALLED.store(true, Relaxed);
            // SAFETY: the thread has not been joined.
            let sent = unsafe { libc::pthread_kill(sleeper.as_pthread_t(), libc::SIGUSR2) };
            assert_eq!(sent, 0);
            thread::sleep(Duration::from_millis(10));
            drop(held);
            handed += u32::from(mutex.try_lock().is_none());
            STALLED.store(false, Relaxed);
            sleeper.join().unwrap();
        }
    });
}

/// A thread that takes the lock again as soon as it has released it does not keep a sleeper out.
#[test]
#[cfg_attr(miri, ignore = "of wall time")]
fn a_sleeper_is_not_kept_out_for_long() {
    let (longest, sections) = in_time(|| {
        let (mutex, over) = (shared::<AlwaysBlock>(), Arc::new(AtomicBool::new(false)));
        let barging = {
            let (mutex, over) = (mutex.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    let pair = mutex.lock();
                    pair.bump();
                    stanchion_machine::wait::delay(100_000);
                }
            })
        };
        let mut longest = Duration::ZERO;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(300) {
            let came = Instant::now();
            mutex.lock().bump();
            longest = longest.max(came.elapsed());
        }
        over.store(true, Relaxed);
        barging.join().unwrap();
        (longest, mutex.lock().count())
    });
    assert!(sections > 100, "{sections} sections: no thread barged");
    // 10 ms, and what a busy machine takes to let two threads run.
    assert!(longest < Duration::from_secs(10), "kept out for {longest:?}");
}

mod bounds {
    use super::*;
    use stanchion_competitive::{MappedMutexGuard, MappedPolicyMutexGuard, PolicyMutexGuard};
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::cell::Cell;
    use std::panic::{RefUnwindSafe, UnwindSafe};
    use std::rc::Rc;

    /// `Send` and not `Sync`, neither, `Sync` and not `Send`, and both.
    type SendOnly = Cell<u8>;
    type Neither = Rc<u8>;
    type SyncOnly = std::sync::MutexGuard<'static, u8>;
    type Both = u8;

    macro_rules! bounds {
        ($($mutex:ident, $guard:ident, $mapped:ident $(, $policy:ty)?;)+) => {$(
            assert_impl_all!($mutex<Both $(, $policy)?>: Send, Sync);
            assert_impl_all!($mutex<SendOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mutex<Neither $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mutex<SyncOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mutex<*mut u8 $(, $policy)?>: Send, Sync);
            // The lock knows its holder's number, so a guard stays with its thread.
            assert_not_impl_any!($guard<'static, Both $(, $policy)?>: Send);
            assert_not_impl_any!($guard<'static, SendOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($guard<'static, Neither $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($guard<'static, SyncOnly $(, $policy)?>: Send, Sync);
            assert_impl_all!($guard<'static, Both $(, $policy)?>: Sync);
            assert_not_impl_any!($mapped<'static, Both $(, $policy)?>: Send);
            assert_not_impl_any!($mapped<'static, SendOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mapped<'static, Neither $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mapped<'static, SyncOnly $(, $policy)?>: Send);
            assert_impl_all!($mapped<'static, Both $(, $policy)?>: Sync);
            assert_impl_all!($mapped<'static, SyncOnly $(, $policy)?>: Sync);
        )+};
    }

    bounds! {
        Mutex, MutexGuard, MappedMutexGuard;
        PolicyMutex, PolicyMutexGuard, MappedPolicyMutexGuard, AlwaysBlock;
        PolicyMutex, PolicyMutexGuard, MappedPolicyMutexGuard, OptimalOnlineApproximation;
    }

    assert_impl_all!(RawPolicyMutex<Adaptive>: RawMutex, RawMutexTimed, Default, std::fmt::Debug, Send, Sync, UnwindSafe, RefUnwindSafe);
}

/// A policy that takes the lock it is asked about, and keeps it.
struct Taker;

static TAKEN: PolicyMutex<u32, Taker> = PolicyMutex::new(0);
static LET_GO: AtomicBool = AtomicBool::new(false);

thread_local! {
    static KEPT: RefCell<Option<PolicyMutexGuard<'static, u32, Taker>>> = const { RefCell::new(None) };
}

impl Policy for Taker {
    const INIT: Self = Self;

    fn threshold(&self, _contention: &Contention) -> u64 {
        LET_GO.store(true, Relaxed);
        let guard = loop {
            match TAKEN.try_lock() {
                Some(guard) => break guard,
                None => thread::yield_now(),
            }
        };
        KEPT.set(Some(guard));
        u64::MAX
    }
}

/// A lock that is the thread's own meanwhile was not handed to it: there would be two guards.
#[test]
fn a_policy_that_keeps_the_lock_does_not_give_it_twice() {
    in_time(|| {
        let held = TAKEN.lock();
        let waiter = thread::spawn(|| {
            let second = catch_unwind(|| drop(TAKEN.lock()));
            let first = KEPT.take().is_some();
            (first, second.is_ok())
        });
        while !LET_GO.load(Relaxed) {
            thread::yield_now();
        }
        drop(held);
        assert_eq!(
            waiter.join().unwrap(),
            (true, false),
            "the policy has the lock, its waiter has not"
        );
        assert!(TAKEN.try_lock().is_some());
        LET_GO.store(false, Relaxed);
        // One that would give up does so.
        let held = TAKEN.lock();
        let waiter = thread::spawn(|| {
            let second = TAKEN.try_lock_for(Duration::from_millis(1)).is_some();
            (KEPT.take().is_some(), second)
        });
        while !LET_GO.load(Relaxed) {
            thread::yield_now();
        }
        drop(held);
        assert_eq!(waiter.join().unwrap(), (true, false));
        assert!(TAKEN.try_lock().is_some());
    });
}
