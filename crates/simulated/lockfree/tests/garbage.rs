//! A thread that stops keeps back little: however long the others go on, the memory that cannot be
//! freed because of it does not grow.
//!
//! Reclamation by epochs fails this: one thread that stops inside an operation keeps all memory
//! that is retired from then on. Here one thread is frozen after each third access of a take, and
//! two others put in and take out 1,600 times. The test counts the pieces that they have allocated
//! and not given back.

use stanchion_lockfree_simulated as lockfree;

#[path = "../../../lockfree/tests/common/structures.rs"]
mod structures;

use std::alloc::{GlobalAlloc, Layout};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use stanchion_simulator::{Arena, Simulation, ThreadId, inside, machines, os::freeze};
use structures::Subject;

/// Counts what is alive, and leaves the rest to the simulator's allocator. One test at a time runs
/// here.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the pieces are the arena's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { Arena.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { Arena.dealloc(piece, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations of each kind of each of the others.
const EACH: u64 = 800;

/// The most pieces that may be kept back: with hazard pointers and fences on both sides, up to 256
/// in each thread's list of retired nodes, however long it goes on.
const KEPT: isize = 2 * 300;

/// Every so many accesses of the take the victim is stopped.
const STRIDE: usize = 3;

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

/// Returns the number of pieces that are alive when the others have ended, less the number before,
/// and whether the victim was frozen.
fn grown(make: fn() -> Arc<dyn Subject>, accesses: u64) -> (isize, bool) {
    // Where barriers take long, a thread collects up to 4,096 nodes before it scans.
    let machine = machines::modern(3).symmetric_fences();
    let run = Simulation::new(machine).run(move || {
        let subject = make();
        (0..4).for_each(|value| _ = subject.put(value));
        let own = subject.clone();
        let victim = spawn(move || freeze::after(accesses, || _ = own.take()));
        let frozen = freeze::wait(victim);
        let before = LIVE.load(Ordering::Relaxed);
        let others = [(); 2].map(|()| {
            let subject = subject.clone();
            spawn(move || {
                for value in 0..EACH {
                    subject.put(value);
                    subject.take();
                }
            })
        });
        others.into_iter().for_each(inside::join);
        (LIVE.load(Ordering::Relaxed) - before, frozen)
    });
    run.unwrap_or_else(|failure| panic!("{failure}")).result
}

/// The most that is kept back, over all accesses after which the victim may stop.
fn most(make: fn() -> Arc<dyn Subject>) -> isize {
    let mut most = 0;
    for accesses in (0..).step_by(STRIDE) {
        let (pieces, frozen) = grown(make, accesses);
        most = most.max(pieces);
        if !frozen {
            break;
        }
    }
    most
}

/// Frees nothing that was taken out.
struct Keeps;

impl Subject for Keeps {
    fn put(&self, value: u64) -> bool {
        core::mem::forget(Box::new(value));
        true
    }

    fn take(&self) -> Option<u64> {
        None
    }

    fn look(&self) -> bool {
        true
    }
}

#[test]
fn a_stopped_thread_keeps_little_back() {
    let mut wrong = Vec::new();
    for case in structures::all().iter().filter(|case| case.progress.is_non_blocking()) {
        let most = most(case.make);
        println!("{}: {most} pieces at most", case.name);
        if most > KEPT {
            wrong.push(case.name);
        }
    }
    assert!(wrong.is_empty(), "they keep more than {KEPT} pieces: {wrong:?}");
    assert!(most(|| Arc::new(Keeps)) > KEPT, "what keeps everything is seen");
}
