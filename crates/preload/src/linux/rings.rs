//! Switch records of the program's threads: what a waker did during the wait that it ended.
//!
//! The kernel keeps a ring of records for a thread: when it lost its processor, whether it waited
//! or was preempted, and when it got one again ([`stanchion_machine::presence::switches`]). Each
//! thread that waits or wakes others asks for its own ring. A waiter reads that of its waker.
//!
//! # Bounds
//!
//! - At most [`RINGS`] threads have a ring. A thread that has ended leaves its ring to the others.
//! - The rings lock at most one [`PART`]th of the memory that the process may lock. The rest is the
//!   program's.
//! - The descriptor that a ring needs for a moment is not one of the last [`SPARE`] of the process.
//! - Records cost about a microsecond for each absence from a processor. A thread that is absent
//!   [`WINDOW`] times in less than [`APART_NS`] each gives its ring up, and asks again after
//!   [`PAUSE_NS`]. So a thread that waits very often has records in windows.
//! - A process with a filter of system calls gets no ring, because the filter may end it.

use core::cell::Cell;

use stanchion_competitive::waits::events::Meanwhile;
use stanchion_machine::atomic::{AtomicBool, Ordering, signal_fence};
use stanchion_machine::fork::generation;
use stanchion_machine::presence::switches::{Ring, Switch};

use super::seat::{CHANGING, Claim, FREE, Seat, key};
use super::{errno, filter};

/// The most threads that have a ring.
const RINGS: usize = 256;
/// The number of places, from the one that a thread's number gives, in which its ring may be.
const NEAR: usize = 16;
/// The part of the memory that may be locked, which is one in so many.
const PART: u64 = 8;
/// The pages that a ring locks.
const PAGES: u64 = 2;
/// The descriptors that are left to the program.
const SPARE: u64 = 32;
/// The number of absences after which a thread looks whether they were too many.
const WINDOW: u64 = 1_024;
/// The least time between absences, in nanoseconds: records then cost half a hundredth.
const APART_NS: u64 = 200_000;
/// The time after which a thread without a ring asks again, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000_000;

/// The numbers that the kernel has for a thread.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// The [`generation`] of the process when they were asked for, or 0 before that.
    pub(super) generation: u32,
    /// The number of the process.
    pub(super) process: u32,
    /// The number of the thread.
    pub(super) thread: u32,
}

/// A ring in its place.
struct Made {
    /// The ring.
    ring: Ring,
    /// The time at which it was made.
    at: u64,
}

/// A place for a ring.
type Place = Seat<Made>;

/// The places. All threads of the process share them.
static PLACES: [Place; RINGS] = [const { Place::new() }; RINGS];

/// True once the process is to have no rings.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// The memory of a thread.
#[derive(Clone, Copy)]
struct Own {
    /// The [`generation`] of the process when it was written.
    generation: u32,
    /// The index of its place plus 1, or 0 without a ring.
    place: u32,
    /// The number of switches at the last look.
    count: u64,
    /// The time of the last look, in nanoseconds. Without a ring, the time to ask again.
    at: u64,
}

std::thread_local! {
    /// The memory of the calling thread. It needs no destructor.
    static OWN: Cell<Own> = const { Cell::new(Own { generation: 0, place: 0, count: 0, at: 0 }) };
}

/// Returns nanoseconds on the monotonic clock. It makes no system call and needs no preparation.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes the process have no rings.
pub(super) fn turn_off() {
    // Relaxed, as are the loads: it orders nothing.
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Sees to it that the calling thread has a ring, if it may have one. May change `errno`.
#[inline]
pub(super) fn keep(numbers: Numbers, now: u64) {
    if IS_OFF.load(Ordering::Relaxed) {
        return;
    }
    let own = OWN.get();
    if own.generation != numbers.generation || own.place == 0 {
        if own.generation != numbers.generation || now >= own.at {
            ask(numbers, now);
        }
        return;
    }
    let place = &PLACES[(own.place - 1) as usize % RINGS];
    let owner = key(numbers.generation, numbers.thread);
    // Another thread takes the ring down if it took this one for an ended one of that number.
    let Some(count) = place.read(owner, |made| made.ring.count()) else {
        OWN.set(Own { place: 0, at: now + PAUSE_NS, ..own });
        return;
    };
    if count.wrapping_sub(own.count) < 2 * WINDOW {
        return;
    }
    let looked = Own { count, at: now, ..own };
    if now.saturating_sub(own.at) < WINDOW * APART_NS {
        let take = || filter::permit().is_some_and(|_permit| place.take_down(owner));
        give_up(looked, take);
    } else {
        OWN.set(looked);
    }
}

/// Gives the ring of the calling thread up by `take`. If that returns false, the thread keeps it,
/// and `kept` is its memory.
fn give_up(kept: Own, take: impl FnOnce() -> bool) {
    // A signal handler that comes while the ring is unmapped finds that there is none.
    OWN.set(Own { place: 0, at: kept.at + PAUSE_NS, ..kept });
    signal_fence();
    if !take() {
        OWN.set(kept);
    }
}

/// Asks for a ring of the calling thread.
#[cold]
fn ask(numbers: Numbers, now: u64) {
    // A signal handler that comes here meanwhile finds that it has to wait.
    let none = Own {
        generation: numbers.generation,
        place: 0,
        count: 0,
        at: now.saturating_add(PAUSE_NS),
    };
    OWN.set(none);
    // None of the calls below may come after a filter.
    let Some(_permit) = filter::permit() else {
        turn_off();
        return;
    };
    let Some((index, claim)) = claim(numbers) else { return };
    let ring = if has_room(numbers) { ring(numbers) } else { None };
    let is_there = ring.is_some();
    // What a parent of this process left there is not unmapped in the child.
    claim.fill(numbers.thread, ring.map(|ring| Made { ring, at: self::now() }));
    if is_there {
        OWN.set(Own { place: index as u32 + 1, at: now, ..none });
    }
}

/// Returns whether the places in use, one of which this thread has claimed, may all have a ring.
fn has_room(numbers: Numbers) -> bool {
    // SAFETY: asks the C library for a number that it knows.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let most = most(limit(libc::RLIMIT_MEMLOCK), u64::try_from(page).unwrap_or(4_096));
    let is_used = |place: &&Place| {
        // Of two threads that claim a place now, both may see too many, and ask again.
        let owner = place.owner();
        owner >> 32 == u64::from(numbers.generation) && owner as u32 != FREE
    };
    let fits = || PLACES.iter().filter(is_used).count() as u64 <= most;
    fits() || sweep(numbers) && fits()
}

/// Returns the most rings of a process that may lock so many bytes.
fn most(bytes: u64, page: u64) -> u64 {
    (bytes / PART / (PAGES * page).max(1)).min(RINGS as u64)
}

/// Returns a limit of this process.
fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to `limit`.
    unsafe { libc::getrlimit(resource, &mut limit) };
    limit.rlim_cur
}

/// Makes a ring of the calling thread.
fn ring(numbers: Numbers) -> Option<Ring> {
    let descriptors = limit(libc::RLIMIT_NOFILE).saturating_sub(SPARE);
    let descriptors = u32::try_from(descriptors).unwrap_or(u32::MAX);
    let ring = Ring::bare(descriptors).or_else(|why| match why {
        // All the memory for rings is in use: by threads that have ended, perhaps.
        libc::EPERM | libc::EAGAIN if sweep(numbers) => Ring::bare(descriptors),
        why => Err(why),
    });
    match ring {
        Ok(ring) => Some(ring),
        // A descriptor or memory may be there later.
        Err(libc::EMFILE | libc::ENFILE | libc::EPERM | libc::EAGAIN | libc::ENOMEM) => None,
        Err(_) => {
            turn_off();
            None
        }
    }
}

/// Takes down the rings of threads that have ended. Returns whether there were any.
fn sweep(numbers: Numbers) -> bool {
    let mut any = false;
    for place in &PLACES {
        let owner = place.owner();
        let thread = owner as u32;
        if owner >> 32 == u64::from(numbers.generation)
            && !matches!(thread, FREE | CHANGING)
            && is_gone(numbers.process, thread)
        {
            any |= place.take_down(owner);
        }
    }
    any
}

/// Returns whether this process has no thread of that number.
fn is_gone(process: u32, thread: u32) -> bool {
    // SAFETY: sends no signal.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    result != 0 && errno::last() == libc::ESRCH
}

/// Claims a place near the one of the thread. If an earlier thread of that number has left its
/// ring, that is the place.
fn claim(numbers: Numbers) -> Option<(usize, Claim<'static, Made>)> {
    let own = key(numbers.generation, numbers.thread);
    for index in near(numbers.thread) {
        if PLACES[index].owner() == own && !PLACES[index].take_down(own) {
            return None;
        }
    }
    let free = || {
        near(numbers.thread)
            .find_map(|index| Some((index, PLACES[index].claim(numbers.generation)?)))
    };
    free().or_else(|| if sweep(numbers) { free() } else { None })
}

/// Returns the indices of the places in which the ring of a thread may be.
fn near(thread: u32) -> impl Iterator<Item = usize> {
    (0..NEAR).map(move |near| (thread as usize + near) % RINGS)
}

/// Returns the times of the thread `waker` of this process from `since` to `until`, if its ring has
/// all of that time.
pub(super) fn meanwhile(waker: u32, since: u64, until: u64) -> Option<Meanwhile> {
    if matches!(waker, FREE | CHANGING) || IS_OFF.load(Ordering::Relaxed) {
        return None;
    }
    near(waker).find_map(|index| {
        PLACES[index].read(key(generation(), waker), |Made { ring, at }| {
            if *at > since {
                return None;
            }
            let switch = |number| Some((ring.switch(number)?, ring.time(number)?));
            split(ring.count(), switch, since, until)
        })
    })?
}

/// Returns the times between `since` and `until` by `count` switches of a thread that began on a
/// processor; `None` if `switch` does not know one that it takes.
fn split(
    count: u64,
    switch: impl Fn(u64) -> Option<(Switch, u64)>,
    since: u64,
    until: u64,
) -> Option<Meanwhile> {
    let mut times = Meanwhile::default();
    let mut end = until;
    for number in (0..count).rev() {
        let (kind, at) = switch(number)?;
        let begin = at.clamp(since, end);
        let time = match kind {
            Switch::In => &mut times.ran_ns,
            Switch::Preempted => &mut times.preempted_ns,
            Switch::Blocked => &mut times.blocked_ns,
        };
        *time += end - begin;
        end = begin;
        if at <= since {
            return Some(times);
        }
    }
    times.ran_ns += end.saturating_sub(since);
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(switches: &[(Switch, u64)], since: u64, until: u64) -> Option<(u64, u64, u64)> {
        let switch = |number: u64| switches.get(usize::try_from(number).ok()?).copied();
        let times = split(switches.len() as u64, switch, since, until)?;
        assert_eq!(times.ran_ns + times.preempted_ns + times.blocked_ns, until - since);
        Some((times.ran_ns, times.preempted_ns, times.blocked_ns))
    }

    #[test]
    fn times_are_those_between_switches() {
        use Switch::{Blocked, In, Preempted};
        let all =
            [(Blocked, 100), (In, 130), (Preempted, 140), (In, 190), (Blocked, 200), (In, 201)];
        assert_eq!(times(&[], 10, 50), Some((40, 0, 0)));
        assert_eq!(times(&all, 10, 50), Some((40, 0, 0)));
        assert_eq!(times(&all, 90, 210), Some((39, 50, 31)));
        assert_eq!(times(&all, 110, 120), Some((0, 0, 10)));
        assert_eq!(times(&all, 130, 140), Some((10, 0, 0)));
        assert_eq!(times(&all, 150, 150), Some((0, 0, 0)));
        assert_eq!(times(&all, 300, 400), Some((100, 0, 0)));
    }

    #[test]
    fn times_with_lost_records_are_not_known() {
        // The first records have been overwritten.
        let switch = |number| (number >= 4).then(|| (Switch::In, 10 * number));
        assert_eq!(split(8, switch, 39, 90), None);
        assert_eq!(split(8, switch, 40, 90).map(|times| times.ran_ns), Some(50));
    }

    #[test]
    fn a_ring_is_not_unmapped_while_it_is_read() {
        let Ok(ring) = Ring::bare(1 << 20) else { return };
        let place = Place::new();
        let owner = key(generation(), 7);
        let claim = place.claim(generation()).unwrap();
        assert!(place.claim(generation()).is_none());
        claim.fill(7, Some(Made { ring, at: 5 }));
        assert!(place.claim(generation()).is_none());
        assert_eq!(place.read(owner + 1, |_| ()), None);
        let read = place.read(owner, |made| {
            assert!(!place.take_down(owner));
            (made.ring.count().is_multiple_of(2), made.at)
        });
        assert_eq!(read, Some((true, 5)));
        assert!(place.take_down(owner));
        assert_eq!(place.read(owner, |_| ()), None);
        assert!(!place.take_down(owner));
    }

    #[test]
    fn rings_lock_an_eighth_of_what_may_be_locked() {
        assert_eq!(most(0, 4_096), 0);
        assert_eq!(most(64 << 10, 4_096), 1);
        assert_eq!(most(8 << 20, 4_096), 128);
        assert_eq!(most(libc::RLIM_INFINITY, 4_096), RINGS as u64);
    }

    #[test]
    fn a_ring_is_forgotten_before_it_is_unmapped() {
        let kept = Own { generation: generation(), place: 3, count: 5, at: 7 };
        give_up(kept, || OWN.get().place == 0);
        assert_eq!((OWN.get().place, OWN.get().at), (0, 7 + PAUSE_NS));
        give_up(kept, || false);
        assert_eq!((OWN.get().place, OWN.get().at), (3, 7));
    }

    #[test]
    fn a_thread_forgets_a_ring_that_was_taken_down() {
        // SAFETY: asks for a number.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        let numbers = Numbers { generation: generation(), process: std::process::id(), thread };
        keep(numbers, 1);
        let own = OWN.get();
        if own.place == 0 {
            return;
        }
        assert!(PLACES[own.place as usize - 1].take_down(key(numbers.generation, thread)));
        keep(numbers, 2);
        assert_eq!((OWN.get().place, OWN.get().at), (0, 2 + PAUSE_NS));
    }

    #[test]
    fn a_parents_ring_and_its_readers_do_not_count() {
        // A child has a copy of the place while a thread of the parent reads. Here they share it,
        // so there is nothing in what it has.
        let place = Seat::new();
        let (parent, child) = (generation().wrapping_sub(1), generation());
        place.claim(parent).unwrap().fill(7, Some(()));
        assert_eq!(place.owner(), key(parent, 7));
        let read = place.read(key(parent, 7), |()| {
            assert!(!place.take_down(key(parent, 7)));
            assert_eq!(place.read(key(child, 7), |()| ()), None);
            place.claim(child).unwrap().fill(8, Some(()));
            assert!(place.take_down(key(child, 8)), "a reader of the parent counted");
            place.claim(child).unwrap().fill(9, Some(()));
            assert_eq!(place.read(key(child, 9), |()| ()), Some(()));
        });
        assert_eq!(read, Some(()));
        assert!(place.take_down(key(child, 9)), "the parent's reader left the child's count");
        place.claim(child).unwrap().fill(9, None);
        assert_eq!(place.owner(), key(child, FREE));
    }
}
