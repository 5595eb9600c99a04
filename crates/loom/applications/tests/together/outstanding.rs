//! Models of how the threads of quicksort and of the travelling salesman know that all is done.

use stanchion_applications_loom::outstanding::{Broken, Outstanding};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{Lock, explore};

/// A pool with pieces of rope, to be cut down to length 1, and for each such piece a cell in which
/// its thread leaves a mark.
struct Ropes {
    /// The pieces that no thread has taken: begin and length. Written by every thread, under the
    /// lock.
    pool: lock_api::Mutex<Lock, Vec<(usize, usize)>>,
    /// The count of the pieces that are left. Written by every thread.
    outstanding: Outstanding,
    /// A mark for each piece of length 1. Written by the thread that took the piece.
    marks: Vec<UnsafeCell<u32>>,
}

// SAFETY: only the thread that has taken a piece out of the pool touches the mark of the piece. The
// models check that.
unsafe impl Sync for Ropes {}

impl Ropes {
    fn new(length: usize) -> Arc<Self> {
        Arc::new(Self {
            pool: lock_api::Mutex::new(vec![(0, length)]),
            outstanding: Outstanding::new(1),
            marks: (0..length).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    /// Works until all is done, or for as many pieces.
    fn cut(&self, mut pieces: usize) -> Result<(), Broken> {
        while pieces > 0
            && let Some((at, length)) = self.outstanding.next(|| self.pool.lock().pop())
        {
            pieces -= 1;
            if length == 1 {
                // SAFETY: see `Ropes`.
                self.marks[at].with_mut(|mark| unsafe { *mark += 1 });
                self.outstanding.replace(0)?;
            } else {
                self.outstanding.replace(2)?;
                self.pool.lock().extend([(at, 1), (at + 1, length - 1)]);
                self.outstanding.notify();
            }
        }
        Ok(())
    }

    fn marks(&self) -> Vec<u32> {
        // SAFETY: all threads have been joined.
        self.marks.iter().map(|mark| mark.with(|mark| unsafe { *mark })).collect()
    }
}

/// Both return, and only when both halves are done.
#[test]
fn two_threads_end_together_when_all_is_done_preemptions_3() {
    let model = Model::new().preemptions(3);
    explore("outstanding::two_threads_end_together_when_all_is_done_preemptions_3", model, || {
        let ropes = Ropes::new(2);
        let other = {
            let ropes = ropes.clone();
            thread::spawn(move || ropes.cut(usize::MAX))
        };
        assert_eq!(ropes.cut(usize::MAX), Ok(()));
        assert_eq!(other.join().unwrap(), Ok(()));
        assert_eq!(ropes.marks(), [1, 1]);
    });
}

#[test]
fn three_threads_end_together_when_all_is_done_bounded_1() {
    let model = Model::new().preemptions(1);
    explore("outstanding::three_threads_end_together_when_all_is_done_bounded_1", model, || {
        let ropes = Ropes::new(2);
        let others = [(); 2].map(|()| {
            let ropes = ropes.clone();
            thread::spawn(move || ropes.cut(usize::MAX))
        });
        assert_eq!(ropes.cut(usize::MAX), Ok(()));
        for other in others {
            assert_eq!(other.join().unwrap(), Ok(()));
        }
        assert_eq!(ropes.marks(), [1, 1]);
    });
}

/// One has the only piece in hand, and the other waits for what may come of it.
fn one_waits_while_the_other(acts: fn(&Outstanding), name: &str) {
    explore(&format!("outstanding::{name}"), Model::new(), move || {
        let outstanding = Arc::new(Outstanding::new(1));
        let other = {
            let outstanding = outstanding.clone();
            thread::spawn(move || acts(&outstanding))
        };
        assert_eq!(outstanding.next(|| None::<()>), None);
        other.join().unwrap();
    });
}

#[test]
fn a_waiter_returns_when_another_has_done_the_last() {
    one_waits_while_the_other(
        |outstanding| assert_eq!(outstanding.replace(0), Ok(())),
        "a_waiter_returns_when_another_has_done_the_last",
    );
}

#[test]
fn a_waiter_returns_when_another_gives_up() {
    one_waits_while_the_other(Outstanding::give_up, "a_waiter_returns_when_another_gives_up");
}

#[test]
fn a_replacement_fails_when_another_gives_up() {
    explore("outstanding::a_replacement_fails_when_another_gives_up", Model::new(), || {
        let outstanding = Arc::new(Outstanding::new(2));
        let other = {
            let outstanding = outstanding.clone();
            thread::spawn(move || outstanding.give_up())
        };
        // Before or after.
        let _ = outstanding.replace(0);
        other.join().unwrap();
        assert_eq!(outstanding.replace(0), Err(Broken));
    });
}
