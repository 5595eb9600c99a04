//! Litmus tests: two threads look at two objects, and only the objects' own instructions order
//! their calls.
//!
//! A recorded history, as in `linearizable.rs`, has a locked instruction before and after each
//! call. A processor that lets a load go ahead of an earlier store shows nothing there. Here two
//! threads come to each round by plain stores and loads.
//!
//! A *change* is a call that writes, such as a push. A *look* is a call that only reads if it does
//! not find the change: `is_empty`, `len`, a pop of an empty queue, a push to a full one.
//!
//! Shapes:
//!
//! - Store buffering: the first thread changes `x` and looks at `y`; the second changes `y` and
//!   looks at `x`. Forbidden: neither sees the other's change.
//! - The same with a flag: the first changes `x` and loads the flag; the second stores the flag and
//!   looks at `x`. Both accesses of the flag are `SeqCst`. Forbidden: the same.
//! - Message passing: the first changes `x`, then `y`; the second looks at `y`, then at `x`.
//!   Forbidden: it sees the later change only.
//! - The same with a flag: the first changes `x` and stores the flag (Release); the second loads
//!   the flag (Acquire) and looks at `x`. Forbidden: the same.
//! - Independent reads: the first changes `x`, the second changes `y`. Forbidden: two more threads
//!   look at both and see them in different orders.
//!
//! Every look is tried with every other one. Counters are documented to order nothing: for them a
//! fence of the caller's stands between change and look. Independent reads need four processors,
//! and are skipped where there are fewer.
//!
//! `cargo test` does 100,000 rounds of each shape with store buffers, a tenth of the others. It
//! does fewer if the threads seldom have two processors at the same time. These commands do more
//! rounds, and only some structures:
//!
//! ```text
//! STANCHION_ROUNDS=10_000_000 \
//!     cargo test --release -p stanchion-lockfree --test '*litmus' -- --nocapture
//! STANCHION_STRUCTURES=MultiQueue,Ring \
//!     cargo test -p stanchion-lockfree --test litmus -- --nocapture
//! ```

use stanchion_lockfree as lockfree;

#[path = "common/structures.rs"]
mod structures;

use std::env;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use findings::Findings;
use lockfree::heap::{CopiedHeap, HerlihyHeap, LockedArrayHeap, LockedHeap, MultiQueue};
use lockfree::memory::{Counted, Hazard};
use lockfree::queue::{LockedRing, TwoLockQueue};
use lockfree::stack::{EliminationStack, LockedStack, TreiberStack};
use lockfree::{ConcurrentQueue, Counter, Full, Herlihy, LinkedCell};
use stanchion_spin::TestAndSet;
use structures::{Family, Shared, all_structures};

/// A way to look at an object, and whether it has seen the change.
struct Look<S> {
    /// The name, for messages.
    name: &'static str,
    /// A look that sees the change undoes it, so that another thread's look may miss it.
    takes: bool,
    /// The call. Returns whether it sees the change.
    sees: fn(&S) -> bool,
}

/// A call that changes an object, and the ways to see it.
struct Change<S> {
    /// The name, for messages.
    name: &'static str,
    /// Brings the object, which is as the last round left it, to where the change can be made.
    prepare: fn(&S),
    /// The call.
    make: fn(&S),
    /// The looks that can see it.
    looks: Vec<Look<S>>,
}

macro_rules! change {
    ($name:literal, $prepare:expr, $make:expr; $($look:literal $($takes:ident)?: $sees:expr),+) => {
        Change {
            name: $name,
            prepare: $prepare,
            make: $make,
            looks: vec![$(Look {
                name: $look,
                takes: !concat!($(stringify!($takes))?).is_empty(),
                sees: $sees,
            }),+],
        }
    };
}

/// Rounds on objects of their own, before the objects are prepared again.
const BATCH: usize = 64;

/// Rounds of each shape with store buffers, unless more are asked for.
const FEW: u64 = 100_000;

/// The time that so many may take. They take a third of it on two processors that do nothing else.
/// On others the threads seldom have both, and a shape ends early: the test prints that.
const TIME: Duration = Duration::from_millis(100);

/// The number of looks of a thread for the other before it lets a third one have the processor.
/// They last as long as a time slice, because a round needs both at once.
const PATIENCE: u32 = 200_000;

/// At least so many rounds, for which ten times as long is waited.
const FEWEST: u64 = 640;

/// The time that all shapes of this program together may wait for those. There are hundreds of
/// shapes: beside enough busy programs each of them would be late.
const LATE: Duration = Duration::from_secs(20);

/// Nanoseconds that shapes have been late so far. Tests add to it one at a time.
static WAS_LATE: AtomicU64 = AtomicU64::new(0);

#[path = "litmus/findings.rs"]
mod findings;
#[path = "litmus/others.rs"]
mod others;

fn rounds() -> u64 {
    let Some(asked) = env::var_os("STANCHION_ROUNDS") else { return FEW };
    let number = asked.to_str().and_then(|asked| asked.replace('_', "").parse().ok());
    number.unwrap_or_else(|| panic!("STANCHION_ROUNDS is {asked:?}: expected such as 10000000"))
}

/// Returns whether the structure of this name is asked for.
fn asked_for(name: &str) -> bool {
    env::var("STANCHION_STRUCTURES")
        .map_or(true, |asked| asked.split(',').any(|word| name.contains(word)))
}

/// One test at a time: the threads of two would take the processors from one another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The objects of a round.
struct Objects<S> {
    /// The first object.
    x: Line<S>,
    /// The second object.
    y: Line<S>,
    /// The flag, written by a thread's part.
    flag: Line<AtomicBool>,
    /// The answers of each thread, written by that thread.
    seen: [Line<AtomicU64>; 4],
}

/// The part of a thread in a round. Returns the thread's answers.
type Part<'p, S> = &'p (dyn Fn(&Objects<S>) -> u64 + Sync);

/// Has a cache line for itself: a store that waits for its line is what shows a store buffer.
#[repr(align(128))]
struct Line<T>(T);

impl<T> core::ops::Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A barrier at which threads meet before each round, without a locked instruction. Each stores in
/// a line of its own how often it has come.
struct Meeting(Vec<Line<AtomicU64>>);

/// In place of a thread's count: it comes no more.
const GONE: u64 = u64::MAX;

/// A thread that takes part; the others wait for it until this is dropped.
struct Member<'m> {
    /// The barrier at which the threads meet.
    meeting: &'m Meeting,
    /// The number of this thread.
    me: usize,
    /// The number of times that this thread has come.
    times: u64,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.meeting.0[self.me].store(GONE, Release);
    }
}

impl Member<'_> {
    /// Waits until all have come as often as this thread. Returns whether all have.
    fn meet(&mut self) -> bool {
        self.times += 1;
        // Release, and Acquire below: the objects are prepared before a round, and read after it.
        self.meeting.0[self.me].store(self.times, Release);
        self.meeting.0.iter().all(|other| {
            let mut looks = 0_u32;
            loop {
                let times = other.load(Acquire);
                if times >= self.times {
                    return times != GONE;
                }
                looks += 1;
                core::hint::spin_loop();
                if looks.is_multiple_of(PATIENCE) {
                    thread::yield_now();
                }
            }
        })
    }
}

/// Runs `rounds` rounds, or fewer if they take too long. In each round every thread does its `part`
/// on the same objects, and returns its answers. Returns in how many rounds `forbidden` held, and
/// how many rounds there were.
fn play<S: Sync>(
    rounds: u64,
    make: &dyn Fn() -> S,
    prepare: fn(&S),
    parts: &[Part<'_, S>],
    forbidden: fn(&[u64]) -> bool,
) -> (u64, u64) {
    let objects: Vec<Objects<S>> = (0..BATCH)
        .map(|_| Objects {
            x: Line(make()),
            y: Line(make()),
            flag: Line(AtomicBool::new(false)),
            seen: [const { Line(AtomicU64::new(0)) }; 4],
        })
        .collect();
    let meeting = Meeting((0..parts.len()).map(|_| Line(AtomicU64::new(0))).collect());
    let start = Instant::now();
    let time = TIME * u32::try_from(rounds.div_ceil(FEW)).expect("so many rounds");
    let left = LATE.saturating_sub(Duration::from_nanos(WAS_LATE.load(Relaxed)));
    let (end, last) = (start + time, start + time + left.min(9 * time));
    let work = |me: usize| {
        pin(me);
        let mut member = Member { meeting: &meeting, me, times: 0 };
        let (mut failures, mut done) = (0, 0);
        let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ me as u64;
        while done < rounds {
            if me == 0 {
                for object in &objects {
                    prepare(&object.x);
                    prepare(&object.y);
                    object.flag.store(false, Relaxed);
                }
            }
            for object in &objects {
                // The first thread looks at the clock, and the others see that it has gone.
                let now = if me == 0 { Instant::now() } else { start };
                let late = now > end && (done >= FEWEST || now > last);
                if late || !member.meet() {
                    return (failures, done);
                }
                // Which thread is first, and by how much, differs from round to round.
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                for _ in 0..(random >> 32) % 32 {
                    black_box(());
                }
                let seen = parts[me](object);
                object.seen[me].store(seen, Relaxed);
            }
            if !member.meet() {
                return (failures, done);
            }
            done += BATCH as u64;
            if me == 0 {
                let seen = |object: &Objects<S>| -> [u64; 4] {
                    core::array::from_fn(|thread| object.seen[thread].load(Relaxed))
                };
                failures += objects.iter().filter(|object| forbidden(&seen(object))).count() as u64;
            }
        }
        (failures, done)
    };
    thread::scope(|scope| {
        let work = &work;
        let mut threads = (0..parts.len()).map(|me| scope.spawn(move || work(me)));
        let first = threads.next().expect("there is a first thread");
        threads.for_each(drop);
        let done = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        WAS_LATE.fetch_add(end.elapsed().as_nanos() as u64, Relaxed);
        done
    })
}

/// Keeps the calling thread on a processor of its own, where that can be asked for: two threads
/// that wait in one processor's queue never run at the same time.
fn pin(me: usize) {
    #[cfg(target_os = "linux")]
    {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: all zeros is an empty set.
        let mut allowed: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the set is as large as is said, and is written only.
        if unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) } != 0 {
            return;
        }
        let is_allowed = |processor: &usize| {
            // SAFETY: the number is below that of the set's bits.
            unsafe { libc::CPU_ISSET(*processor, &allowed) }
        };
        let processors: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(is_allowed).collect();
        if processors.is_empty() {
            return;
        }
        // SAFETY: all zeros is an empty set.
        let mut own: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the number is below that of the set's bits.
        unsafe { libc::CPU_SET(processors[me % processors.len()], &mut own) };
        // SAFETY: the set is as large as is said, and is read only. A refusal changes nothing.
        unsafe { libc::sched_setaffinity(0, size, &raw const own) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = me;
}

/// Returns whether both looks came back without the other's change.
fn both_missed(seen: &[u64]) -> bool {
    seen[..2] == [0, 0]
}

/// Returns whether a look missed a change that it must see if the other look does. The second bit
/// is the later one.
fn missed_the_earlier(seen: &[u64]) -> bool {
    seen[1] == 0b10
}

/// Two readers, each of which has seen one change and then not the other.
fn disagreed(seen: &[u64]) -> bool {
    seen[2..4] == [0b01, 0b01]
}

fn bits(first: bool, second: bool) -> u64 {
    u64::from(first) | u64::from(second) << 1
}

/// All shapes of every pair of looks. A fence of the caller's stands between a change and what
/// comes after it in the same thread, if `fenced`.
fn shapes<S: Sync>(
    findings: &mut Findings,
    name: &str,
    make: impl Fn() -> S,
    changes: &[Change<S>],
    fenced: bool,
) {
    if !asked_for(name) {
        return;
    }
    if processors() < 2 {
        println!("{name}: skipped, there is one processor");
        return;
    }
    let rounds = rounds();
    let started = Instant::now();
    let (mut tried, mut done) = (0, 0);
    let between = move || {
        if fenced {
            fence(SeqCst);
        }
    };
    // Processors that show more than store buffers are rare, and x86-64 is none of them.
    let fewer = rounds.div_ceil(10);
    let mut shape = |what: &dyn Fn() -> String,
                     rounds: u64,
                     prepare: fn(&S),
                     parts: &[Part<'_, S>],
                     forbidden: fn(&[u64]) -> bool| {
        let (failures, rounds) = play(rounds, &make, prepare, parts, forbidden);
        findings.note(failures, rounds, || format!("{name}, {}", what()));
        tried += 1;
        done += rounds;
    };
    for change in changes {
        let &Change { name: change, prepare, make, ref looks } = change;
        for (at, one) in looks.iter().enumerate() {
            let (one, first) = (one.name, one.sees);
            shape(
                &|| format!("{change}: a flag and {one} in a store buffer"),
                rounds,
                prepare,
                &[
                    &|round| {
                        make(&round.x);
                        between();
                        round.flag.load(SeqCst).into()
                    },
                    &|round| {
                        round.flag.store(true, SeqCst);
                        between();
                        first(&round.x).into()
                    },
                ],
                both_missed,
            );
            shape(
                &|| format!("{change}: a message by a flag to {one}"),
                fewer,
                prepare,
                &[
                    &|round| {
                        make(&round.x);
                        round.flag.store(true, Release);
                        0
                    },
                    &|round| {
                        let flag = round.flag.load(Acquire);
                        bits(first(&round.x), flag)
                    },
                ],
                missed_the_earlier,
            );
            for (other, two) in looks.iter().enumerate() {
                let (two, second) = (two.name, two.sees);
                if other >= at {
                    shape(
                        &|| format!("{change}: {one} and {two} in store buffers"),
                        rounds,
                        prepare,
                        &[
                            &|round| {
                                make(&round.x);
                                between();
                                first(&round.y).into()
                            },
                            &|round| {
                                make(&round.y);
                                between();
                                second(&round.x).into()
                            },
                        ],
                        both_missed,
                    );
                }
                shape(
                    &|| format!("{change}: a message to {one}, then {two}"),
                    fewer,
                    prepare,
                    &[
                        &|round| {
                            make(&round.x);
                            between();
                            make(&round.y);
                            0
                        },
                        &|round| {
                            let later = first(&round.y);
                            between();
                            bits(second(&round.x), later)
                        },
                    ],
                    missed_the_earlier,
                );
                if processors() >= 4 && !looks[at].takes && !looks[other].takes {
                    shape(
                        &|| format!("{change}: independent reads by {one} and {two}"),
                        fewer,
                        prepare,
                        &[
                            &|round| {
                                make(&round.x);
                                0
                            },
                            &|round| {
                                make(&round.y);
                                0
                            },
                            &|round| {
                                let seen = first(&round.x);
                                between();
                                bits(seen, second(&round.y))
                            },
                            &|round| {
                                let seen = first(&round.y);
                                between();
                                bits(seen, second(&round.x))
                            },
                        ],
                        disagreed,
                    );
                }
            }
        }
    }
    println!("{name}: {tried} shapes, {done} rounds, {:.1?}", started.elapsed());
}

/// Returns the number of processors to use. The environment may set it, for a run of the four
/// threads of independent reads on fewer.
fn processors() -> usize {
    let asked = env::var("STANCHION_PROCESSORS").ok().and_then(|asked| asked.parse().ok());
    asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Takes everything out.
fn empty<S: Shared<u64>>(structure: &S) {
    while structure.take().is_some() {}
}

/// Leaves one value in it.
fn one<S: Shared<u64>>(structure: &S) {
    empty(structure);
    assert!(structure.put(1, 1).is_ok());
}

/// Fills it.
fn full<S: Shared<u64>>(structure: &S) {
    while structure.put(1, 1).is_ok() {}
}

fn put<S: Shared<u64>>(structure: &S) {
    assert!(structure.put(1, 1).is_ok(), "there is room");
}

fn take<S: Shared<u64>>(structure: &S) {
    assert!(structure.take().is_some(), "there is one");
}

/// Returns the changes that every structure has.
fn common<S: Shared<u64>>(room: bool) -> Vec<Change<S>> {
    let mut changes = vec![
        change!("push", empty, put; "is_empty": |s: &S| !s.look(), "pop" takes: |s: &S| s.take().is_some()),
        change!("pop", one, take; "is_empty": |s: &S| s.look()),
    ];
    if room {
        changes
            .push(change!("pop when full", full, take; "push" takes: |s: &S| s.put(1, 1).is_ok()));
    }
    changes
}

fn of_family<F: Family>(findings: &mut Findings) {
    let make = F::make::<u64>;
    shapes(findings, F::NAME, make, &common(make().room().is_some()), false);
}

#[test]
fn two_threads_agree_on_structures() {
    let _alone = alone();
    let mut findings = Findings::default();
    macro_rules! with_findings {
        ([$($kind:tt)*] $({ $row:ident: $type:ty, $($rest:tt)* })+) => {
            $(of_family::<structures::$row>(&mut findings);)+
        };
    }
    all_structures!(with_findings);
    findings.conclude();
}

#[test]
fn two_threads_agree_on_calls_outside_the_traits() {
    let _alone = alone();
    let mut findings = Findings::default();
    let f = &mut findings;
    macro_rules! popped {
        ($name:literal, $type:ty, $new:expr; $($looks:tt)+) => {
            shapes::<$type>(f, $name, || $new, &[change!("push", empty, put; $($looks)+)], false)
        };
    }
    popped!("TreiberStack hazards", TreiberStack<u64>, TreiberStack::new();
        "pop_all" takes: |s| s.pop_all().next().is_some(), "is_empty": |s| !s.is_empty());
    popped!("TreiberStack counts", TreiberStack<u64, Counted>, TreiberStack::with_memory(Counted);
        "pop_all" takes: |s| s.pop_all().next().is_some(), "pop" takes: |s| s.pop().is_some());
    popped!("EliminationStack hazards", EliminationStack<u64, Hazard>, EliminationStack::new();
        "pop_all" takes: |s| s.pop_all().next().is_some());
    popped!("LockedStack", LockedStack<u64>, LockedStack::new();
        "len": |s| s.len() == 1, "pop_all" takes: |s| !s.pop_all().is_empty());
    popped!("LockedRing", LockedRing<u64>, LockedRing::with_capacity(4);
        "len": |s| s.len() == 1, "is_empty": |s| !s.is_empty());
    popped!("HerlihyHeap", HerlihyHeap<u64, u64>, HerlihyHeap::new();
        "min_key": |s| s.min_key().is_some(), "is_empty": |s| !s.is_empty());
    popped!("LockedHeap", LockedHeap<u64, u64>, LockedHeap::new();
        "min_key": |s| s.min_key().is_some(), "len": |s| s.len() == 1);
    popped!("LockedArrayHeap", LockedArrayHeap<u64, u64>, LockedArrayHeap::new();
        "min_key": |s| s.min_key().is_some(), "len": |s| s.len() == 1);
    shapes::<TwoLockQueue<u64, TestAndSet>>(
        f,
        "TwoLockQueue under TestAndSet",
        TwoLockQueue::default,
        &[change!("push", |s| while s.pop().is_some() {}, |s| s.push(1);
                "is_empty": |s| !s.is_empty(), "pop" takes: |s| s.pop().is_some())],
        false,
    );
    findings.conclude();
}
