//! Models of what is noted of a carrier: a block is told once, and its end once, whoever looks.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `notes_of_a_block_that_ends` | a carrier that is back from a block, one that looks at it | the end is told without the block, or not at all, or the block after its end was told |
//! | `notes_of_two_who_look_bounded` | the same, and another one that looks | likewise; both tell |
//!
//! Every model prints `model NAME: N executions`.

#[path = "../../../../crates/activations/src/note.rs"]
#[allow(dead_code, unreachable_pub)]
mod note;
/// What `note.rs` tells.
mod upcall {
    #[allow(dead_code)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Upcall {
        Blocked,
        Unblocked,
        Preempted,
    }
}

use machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
use machine::clock::Ticks;
use machine::sync::Arc;
use machine::{Model, thread};
use note::{Note, Seen};
use upcall::Upcall;

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A carrier that is blocked, and who looks at it.
struct Carrier {
    note: Note,
    runs: AtomicBool,
    blocked: AtomicU32,
    unblocked: AtomicU32,
}

impl Carrier {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            note: Note::new(),
            runs: AtomicBool::fresh(false),
            blocked: AtomicU32::fresh(0),
            unblocked: AtomicU32::fresh(0),
        })
    }

    /// What `Shared::look_at` does, at that time.
    fn look(&self, time: u64) {
        let noted = self.note.read();
        // Relaxed: as whoever looks at a record that is being written.
        let seen = if self.runs.load(Ordering::Relaxed) { Seen::Runs } else { Seen::Blocked };
        if noted.seen() == seen || !self.note.see(noted, seen, Ticks::from_bits(time << 2)) {
            return;
        }
        for told in noted.tells(seen) {
            let count = match told {
                Upcall::Blocked => &self.blocked,
                Upcall::Unblocked => &self.unblocked,
                Upcall::Preempted => unreachable!("it never is"),
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the carrier does when it is back; then all that it was told is looked at, when the others have gone.
    fn comes_back(&self) {
        self.runs.store(true, Ordering::Relaxed);
        self.look(0);
    }
}

fn block_that_ends(name: &str, model: Model, lookers: u64) {
    explore(name, model, move || {
        let carrier = Carrier::new();
        let lookers: Vec<_> = (1..=lookers)
            .map(|time| {
                let carrier = carrier.clone();
                thread::spawn(move || carrier.look(time))
            })
            .collect();
        carrier.comes_back();
        lookers.into_iter().for_each(|looker| looker.join().expect("no panic"));
        // Its next scheduling point.
        carrier.look(0);
        let told = |count: &AtomicU32| count.load(Ordering::Relaxed);
        assert!(told(&carrier.blocked) <= 1, "it blocked once");
        assert_eq!(told(&carrier.unblocked), told(&carrier.blocked));
    });
}

#[test]
fn notes_of_a_block_that_ends() {
    block_that_ends("notes_of_a_block_that_ends", Model::new(), 1);
}

#[test]
fn notes_of_two_who_look_bounded() {
    block_that_ends("notes_of_two_who_look_bounded", Model::new().preemptions(3), 2);
}
