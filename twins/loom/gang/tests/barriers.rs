//! Models of the barriers: nobody goes on before all have come, and what was done before is seen after.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `central_two_members` | 2, two phases | none |

use machine::cell::UnsafeCell;
use machine::sync::Arc;
use machine::{Model, thread};
use stanchion_gang_loom::Waiter;
use stanchion_gang_loom::barrier::{Barrier, Central};

/// A cell that one member at a time writes: who, is agreed on by the phase.
struct Written(UnsafeCell<u32>);

// SAFETY: the phases of a barrier keep its writers and readers apart. The models check that.
unsafe impl Send for Written {}
// SAFETY: as above.
unsafe impl Sync for Written {}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

fn member<B: Barrier>(mut waiter: Waiter<Arc<B>>, cells: &[Written; 2]) -> u32 {
    let me = waiter.index();
    let mut led = 0;
    // SAFETY: a member's own cell; the other reads it in the next phase.
    cells[me].0.with_mut(|mine| unsafe { *mine = 1 });
    led += u32::from(waiter.wait().expect("whole").is_leader());
    // SAFETY: its owner writes again in the phase after this one.
    cells[1 - me].0.with(|theirs| assert_eq!(unsafe { *theirs }, 1));
    led += u32::from(waiter.wait().expect("whole").is_leader());
    // SAFETY: the other has read it in the phase before.
    cells[me].0.with_mut(|mine| unsafe { *mine = 2 });
    led
}

fn two_members<B: Barrier + 'static>(name: &str) {
    explore(name, Model::new(), || {
        let barrier = Arc::new(B::with_members(2).expect("two are few"));
        let cells = Arc::new([0, 0].map(|phase| Written(UnsafeCell::new(phase))));
        let mut waiters = Waiter::all(barrier).into_iter();
        let (mine, theirs) = (waiters.next().expect("two"), waiters.next().expect("two"));
        let other = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || member(theirs, &cells))
        };
        let led = member(mine, &cells);
        assert_eq!(led + other.join().expect("no panic"), 2, "one leader a phase");
    });
}

#[test]
fn central_two_members() {
    two_members::<Central>("central_two_members");
}
