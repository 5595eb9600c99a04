//! Models of the lookout's guard: nobody's work waits unseen, and no carrier is left unarmed.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `guard_left_or_work_made` | the lookout, which leaves; one that makes something ready | both think that the other sees to it |
//! | `guard_left_or_work_made_twice_bounded` | the same, where two make something ready | likewise |
//! | `guard_taken_or_carrier_begun` | one that goes on guard; a carrier that begins | nobody arms it |
//!
//! Every model prints `model NAME: N executions`.

#[path = "../../../../crates/activations/src/guard.rs"]
#[allow(dead_code, unreachable_pub)]
mod guard;

use guard::Guard;
use machine::atomic::{AtomicBool, Fresh, Ordering, fence};
use machine::sync::Arc;
use machine::{Model, thread};

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

struct Post {
    guard: Guard,
    work: AtomicBool,
    /// The carrier can be armed.
    registered: AtomicBool,
    armed: AtomicBool,
}

impl Post {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            guard: Guard::new(),
            work: AtomicBool::fresh(false),
            registered: AtomicBool::fresh(false),
            armed: AtomicBool::fresh(false),
        })
    }

    /// What `Shared::tell` and `Shared::guard` do; whether the maker itself goes on guard.
    fn makes_work(&self) -> bool {
        self.work.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let goes = self.guard.is_nobody();
        if goes {
            self.guard.stand();
        }
        goes
    }

    /// What the lookout does before it sleeps; whether it has seen work, and stays.
    fn leaves(&self) -> bool {
        self.guard.leave();
        self.work.load(Ordering::Relaxed)
    }
}

fn beside<T: 'static>(
    post: &Arc<Post>,
    body: impl FnOnce(&Post) -> T + 'static,
) -> thread::JoinHandle<T> {
    let post = post.clone();
    thread::spawn(move || body(&post))
}

#[test]
fn guard_left_or_work_made() {
    explore("guard_left_or_work_made", Model::new(), || {
        let post = Post::new();
        // It has been on guard, and is about to leave.
        post.guard.stand();
        let maker = beside(&post, Post::makes_work);
        let stays = post.leaves();
        let goes = maker.join().expect("no panic");
        assert!(stays || goes, "something is ready, and nobody looks");
    });
}

#[test]
fn guard_left_or_work_made_twice_bounded() {
    let model = Model::new().preemptions(3).choices(0);
    explore("guard_left_or_work_made_twice_bounded", model, || {
        let post = Post::new();
        post.guard.stand();
        let makers = [0, 1].map(|_| beside(&post, Post::makes_work));
        let stays = post.leaves();
        let goes = makers.map(|maker| maker.join().expect("no panic"));
        assert!(stays || goes.contains(&true), "something is ready, and nobody looks");
    });
}

#[test]
fn guard_taken_or_carrier_begun() {
    explore("guard_taken_or_carrier_begun", Model::new(), || {
        let post = Post::new();
        let carrier = beside(&post, |post| {
            post.registered.store(true, Ordering::Relaxed);
            if post.guard.has_begun() {
                post.armed.store(true, Ordering::Relaxed);
            }
        });
        post.guard.stand();
        if post.registered.load(Ordering::Relaxed) {
            post.armed.store(true, Ordering::Relaxed);
        }
        carrier.join().expect("no panic");
        assert!(post.armed.load(Ordering::Relaxed), "nobody would be told of its block");
    });
}
