//! Models of the watch state: no work waits unseen, and no worker is left unarmed.
//!
//! - `watch_left_or_work_made`. Threads: the monitor, which leaves; one that makes work ready.
//!   Failure it looks for: each leaves the watching to the other.
//! - `watch_left_or_work_made_twice_bounded`. Threads: the same, where two make work ready.
//!   Failure it looks for: the same.
//! - `watch_armed_or_worker_begun`. Threads: one that arms the workers; a worker that begins.
//!   Failure it looks for: the worker is not armed.
//!
//! Every model prints `model NAME: N executions`.

use stanchion_activations_loom::__internal::WatchState;
use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering, fence};
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};

struct Scene {
    /// The word that is tested.
    watch_state: WatchState,
    /// Set by the thread that makes work ready.
    work: AtomicBool,
    /// Set when the worker can be armed.
    registered: AtomicBool,
    /// Set when the worker is armed: by the worker itself, or by the thread that arms the workers.
    armed: AtomicBool,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            watch_state: WatchState::new(),
            work: AtomicBool::fresh(false),
            registered: AtomicBool::fresh(false),
            armed: AtomicBool::fresh(false),
        })
    }

    /// Makes work ready as `RuntimeState::wake` does. Returns whether the maker itself arms the
    /// workers.
    fn make_work(&self) -> bool {
        self.work.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let arms = self.watch_state.is_unwatched();
        if arms {
            self.watch_state.arm();
        }
        arms
    }

    /// Leaves as the monitor does before it sleeps. Returns whether it has seen work, and stays.
    fn leave(&self) -> bool {
        self.watch_state.leave();
        self.work.load(Ordering::Relaxed)
    }
}

#[test]
fn watch_left_or_work_made() {
    explore("watch_left_or_work_made", Model::new(), || {
        let scene = Scene::new();
        // The workers were armed, and the monitor is about to leave.
        scene.watch_state.arm();
        let maker = beside(&scene, Scene::make_work);
        let stays = scene.leave();
        let arms = maker.join().expect("no panic");
        assert!(stays || arms, "work is ready, and no thread watches");
    });
}

#[test]
fn watch_left_or_work_made_twice_bounded() {
    let model = Model::new().preemptions(3).choices(0);
    explore("watch_left_or_work_made_twice_bounded", model, || {
        let scene = Scene::new();
        scene.watch_state.arm();
        let makers = [0, 1].map(|_| beside(&scene, Scene::make_work));
        let stays = scene.leave();
        let arms = makers.map(|maker| maker.join().expect("no panic"));
        assert!(stays || arms.contains(&true), "work is ready, and no thread watches");
    });
}

#[test]
fn watch_armed_or_worker_begun() {
    explore("watch_armed_or_worker_begun", Model::new(), || {
        let scene = Scene::new();
        let worker = beside(&scene, |scene| {
            scene.registered.store(true, Ordering::Relaxed);
            if scene.watch_state.worker_begins() {
                scene.armed.store(true, Ordering::Relaxed);
            }
        });
        scene.watch_state.arm();
        if scene.registered.load(Ordering::Relaxed) {
            scene.armed.store(true, Ordering::Relaxed);
        }
        worker.join().expect("no panic");
        assert!(scene.armed.load(Ordering::Relaxed), "its block would not be reported");
    });
}
