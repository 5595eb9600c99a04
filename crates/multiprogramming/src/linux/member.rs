//! A thread under a pseudo-scheduler, and its stops.
//!
//! | the signal arrives and | the handler |
//! | --- | --- |
//! | the thread is no member, is released, or its slice is not over | returns |
//! | it asks not to be preempted, and was lent no time in this slice | lends it time, returns |
//! | else | stops it: sleeps until the others have had their quanta |
//!
//! Lending time moves the end of the slice. A thread that was lent time and takes its request back
//! stops itself. In all cases `slice_end` says when the scheduler's thread has to look again;
//! while the thread is stopped, that is the end of the slice after.
//!
//! # Invariants
//!
//! 1. Only the member's own thread writes its record, in ordinary code or in the handler, except
//!    `released` and `signalled`.
//! 2. `CURRENT` points to the record that `MEMBERSHIP` holds, or is null. It is set to
//!    null before `MEMBERSHIP` lets go of the record.
//! 3. A stop ends by itself, at a time that was fixed when it began, or when `released` is set. No
//!    other thread needs to be alive for that.
//!
//! # Orderings
//!
//! All Relaxed: between a thread and its own handler barriers for the compiler are enough, and the
//! scheduler's thread only needs to see times soon.

use core::cell::{Cell, RefCell};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use core::time::Duration;
use std::sync::Arc;

use crate::{Account, Refused, Times};
use stanchion_machine::clock;
use stanchion_machine::control::signal::keeping_errno;
use stanchion_machine::preemption::{requests, scheduler};

/// The record of a member.
#[derive(Debug)]
pub(super) struct Record {
    /// The kernel's number of the thread.
    pub(super) tid: i32,
    /// The times of its scheduler.
    pub(super) times: Times,
    /// When it joined, in nanoseconds of the monotonic clock, as all times here.
    joined: u64,
    /// When it is to be stopped next.
    pub(super) slice_end: AtomicU64,
    /// A signal is under way.
    pub(super) signalled: AtomicBool,
    /// 1 when the member is not to be stopped any more. A stopped thread sleeps on this word.
    released: AtomicU32,
    /// The thread has left.
    pub(super) gone: AtomicBool,
    /// It is stopped, or about to be.
    stopping: AtomicBool,
    /// The time for which it was stopped, in ns.
    stopped: AtomicU64,
    /// The number of its stops.
    stops: AtomicU64,
    /// The number of times that it was lent time.
    graces: AtomicU64,
    /// The number of stops that came although it had asked to stay.
    breaches: AtomicU64,
}

std::thread_local! {
    /// Needs no destructor, so the handler can read it whenever it comes.
    static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
    /// Leaves when the thread ends, if its guard was forgotten.
    static MEMBERSHIP: Membership = const { Membership(RefCell::new(None)) };
}

struct Membership(RefCell<Option<Arc<Record>>>);

impl Membership {
    fn end(&self) {
        // Invariant 2.
        CURRENT.set(ptr::null());
        // SeqCst, here and below: a handler of this thread sees what stands before the fence first.
        compiler_fence(Ordering::SeqCst);
        // Without a membership, the thread's scheduler is another one.
        if let Some(record) = self.0.take() {
            scheduler::detach();
            record.gone.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end();
    }
}

/// The guard: the thread's own.
#[derive(Debug)]
pub(crate) struct Member(Arc<Record>);

impl Member {
    pub(crate) fn account(&self) -> Account {
        let record = &*self.0;
        // The clock first: a stop in between is then not counted as granted time.
        let lived = clock::monotonic() - record.joined;
        let stopped = record.stopped.load(Ordering::Relaxed);
        Account {
            granted: Duration::from_nanos(lived.saturating_sub(stopped)),
            stopped: Duration::from_nanos(stopped),
            stops: record.stops.load(Ordering::Relaxed),
            graces: record.graces.load(Ordering::Relaxed),
            breaches: record.breaches.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // If it is being destroyed, that ends the membership.
        let _ = MEMBERSHIP.try_with(Membership::end);
    }
}

/// Makes the calling thread a member. Its first slice has `first` nanoseconds.
pub(super) fn join(times: Times, first: u64) -> Result<(Member, Arc<Record>), Refused> {
    // Touched before a handler can need it.
    let _ = requests();
    let now = clock::monotonic();
    let record = Arc::new(Record {
        // SAFETY: cannot fail.
        tid: unsafe { libc::gettid() },
        times,
        joined: now,
        slice_end: AtomicU64::new(now + first),
        signalled: AtomicBool::new(false),
        released: AtomicU32::new(0),
        gone: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        stopped: AtomicU64::new(0),
        stops: AtomicU64::new(0),
        graces: AtomicU64::new(0),
        breaches: AtomicU64::new(0),
    });
    MEMBERSHIP
        .try_with(|membership| {
            let mut place = membership.0.borrow_mut();
            if place.is_some() {
                return Err(Refused::Member);
            }
            *place = Some(Arc::clone(&record));
            CURRENT.set(Arc::as_ptr(&record));
            scheduler::attach(give_way);
            Ok((Member(Arc::clone(&record)), record))
        })
        .unwrap_or(Err(Refused::Member))
}

fn current() -> Option<&'static Record> {
    // SAFETY: Invariant 2: it lives while the pointer is there, which only this thread changes, and
    // not while it is in here.
    unsafe { CURRENT.get().as_ref() }
}

/// The signal has arrived. Async-signal-safe.
pub(super) fn interrupted() {
    let Some(record) = current() else { return };
    record.signalled.store(false, Ordering::Relaxed);
    if record.stopping.load(Ordering::Relaxed) || !record.is_due() {
        return;
    }
    if record.times.grace > 0 && scheduler::lend() {
        record.slice_end.store(clock::monotonic() + record.times.grace, Ordering::Relaxed);
        add(&record.graces, 1);
        return;
    }
    if requests() > 0 {
        add(&record.breaches, 1);
    }
    // Again: another signal of ours, of a scheduler that this thread has left, may have come in
    // between.
    record.stop(|| record.is_due());
}

/// Stops the calling thread, which was lent time and needs it no more. Returns whether it stopped.
/// Keeps `errno`: a request ends where a lock is released, and the caller may be between a call of
/// its own and its look at `errno`.
#[cold]
fn give_way() -> bool {
    let mut gave_way = false;
    // A handler that came first has stopped the thread, and settled what it was lent.
    let stop = |record: &Record| record.stop(scheduler::is_lent);
    keeping_errno(|| gave_way = current().is_some_and(stop));
    gave_way
}

/// Adds to a sum of the calling thread's own.
fn add(sum: &AtomicU64, more: u64) {
    sum.store(sum.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Record {
    /// Returns whether the slice is over.
    fn is_due(&self) -> bool {
        clock::monotonic() >= self.slice_end.load(Ordering::Relaxed)
    }

    /// Stops the calling thread, the owner of this record, until the others have had their quanta.
    /// It does so only if the thread `must`, asked when no handler can come in between any more.
    /// Returns whether it stopped. Async-signal-safe.
    fn stop(&self, must: impl FnOnce() -> bool) -> bool {
        self.stopping.store(true, Ordering::Relaxed);
        // SeqCst: a handler that comes after `must` was asked finds `stopping` set.
        compiler_fence(Ordering::SeqCst);
        let stops = must() && !self.is_released();
        if stops {
            let start = clock::monotonic();
            let until = start + self.times.others;
            // The scheduler need not look before then.
            self.slice_end.store(until + self.times.quantum, Ordering::Relaxed);
            let mut now = start;
            while now < until && !self.is_released() {
                self.sleep_until(until);
                now = clock::monotonic();
            }
            add(&self.stopped, now - start);
            add(&self.stops, 1);
            // A whole slice, however late it begins.
            self.slice_end.store(now + self.times.quantum, Ordering::Relaxed);
        }
        scheduler::settle();
        // SeqCst: a handler that finds `stopping` clear finds the thread settled.
        compiler_fence(Ordering::SeqCst);
        self.stopping.store(false, Ordering::Relaxed);
        stops
    }

    fn is_released(&self) -> bool {
        self.released.load(Ordering::Relaxed) != 0
    }

    /// Lets the thread go on, for good.
    pub(super) fn release(&self) {
        self.released.store(1, Ordering::Relaxed);
        // Not by `park`, which does without futexes where words have 32 bits.
        // SAFETY: a private wake uses the address as a key and does not read it.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.released.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                i32::MAX,
            );
        }
    }

    /// Sleeps until then, until released, or until a signal comes.
    fn sleep_until(&self, until: u64) {
        // If the kernel cannot count so far, until released.
        let time = Timespec::of(until);
        // SAFETY: the word and the time outlive the call, which is async-signal-safe: a plain
        // system call.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.released.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                0_u32,
                time.as_ref().map_or(ptr::null(), ptr::from_ref),
                ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            );
        }
    }
}

/// A time as `SYS_futex` reads it: two words of the kernel's (`__kernel_old_timespec`). It is not
/// `libc::timespec`: where words have 32 bits, a C library may have times of 64.
#[repr(C)]
struct Timespec {
    /// Whole seconds.
    seconds: KernelLong,
    /// The rest, in ns.
    nanos: KernelLong,
}

/// On x32 words have 32 bits, but the kernel's have 64.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "32"))]
type KernelLong = i64;
#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "32")))]
type KernelLong = libc::c_long;

impl Timespec {
    /// `None`, which is for ever, for a time beyond what the kernel can count: 68 years where words
    /// have 32 bits.
    fn of(nanos: u64) -> Option<Self> {
        // `as`: a remainder below 10^9 fits.
        let rest = (nanos % 1_000_000_000) as KernelLong;
        Some(Self { seconds: (nanos / 1_000_000_000).try_into().ok()?, nanos: rest })
    }
}
