//! Models of the condition variable. A thread that would sleep for ever is reported as a deadlock.
//!
//! The mutex is a spin lock where that is enough, because the blocking mutex's own steps are
//! modelled elsewhere and multiply the executions.

use std::time::Duration;

use lock_api::{RawMutex, RawMutexTimed};
use stanchion_competitive_loom::policy::AlwaysBlock;
use stanchion_competitive_loom::{Condvar, RawCondvar, RawPolicyMutex};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Instant;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};
use stanchion_spin::TestAndSet;

/// Two mutexes and one condition variable.
type Shared = ([lock_api::Mutex<TestAndSet, Payload>; 2], Condvar);

/// The data under the mutex, under loom's race checker.
struct Payload(UnsafeCell<State>);

#[derive(Clone, Copy, Default)]
struct State {
    /// The condition. Written by the holder of the mutex.
    ready: bool,
    /// The number of waiters that were notified. Written by the holder of the mutex.
    notified: usize,
}

// SAFETY: it is what a mutex is for: sent, and reached by one thread at a time. The models check
// that.
unsafe impl Send for Payload {}

impl Payload {
    fn is_ready(&self) -> bool {
        // SAFETY: the caller holds the lock; if that is not enough, the cell reports it.
        self.0.with(|state| unsafe { (*state).ready })
    }

    fn notified(&self) -> usize {
        // SAFETY: as in `is_ready`.
        self.0.with(|state| unsafe { (*state).notified })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        // SAFETY: as in `is_ready`.
        self.0.with_mut(|state| change(unsafe { &mut *state }));
    }
}

/// A mutex with a condition, and the condition variable on which threads wait for it.
struct Scene<M: RawMutex> {
    /// The state. Written by every thread, under the mutex.
    mutex: lock_api::Mutex<M, Payload>,
    /// The condition variable.
    changed: lock_api::Condvar<RawCondvar<M>>,
}

impl<M> Scene<M>
where
    M: RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync + 'static,
{
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: lock_api::Mutex::new(Payload(UnsafeCell::new(State::default()))),
            changed: lock_api::Condvar::new(),
        })
    }

    /// Makes the condition true.
    fn set(&self) {
        self.mutex.lock().change(|state| state.ready = true);
    }

    /// Waits once if the condition is not true. There is no loop, since no thread comes back
    /// without a notification.
    fn wait(&self) {
        let mut guard = self.mutex.lock();
        if !guard.is_ready() {
            self.changed.wait(&mut guard);
            assert!(guard.is_ready(), "came back without being notified");
        }
    }

    /// The same with a deadline; counts itself if it was notified.
    fn wait_some_time(&self) {
        let mut guard = self.mutex.lock();
        if !guard.is_ready() {
            let result = self.changed.wait_for(&mut guard, Duration::from_secs(1));
            if !result.timed_out() {
                guard.change(|state| state.notified += 1);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.changed.raw().waiting() == 0
    }
}

fn pass_on<M>()
where
    M: RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync + 'static,
{
    let scene = Scene::<M>::new();
    let setter = beside(&scene, |scene| {
        scene.set();
        scene.changed.notify_one();
    });
    scene.wait();
    setter.join().unwrap();
    assert!(scene.is_quiet());
}

#[test]
fn condvar_two_threads() {
    explore("condvar_two_threads", Model::new(), pass_on::<TestAndSet>);
}

#[test]
fn condvar_with_a_blocking_mutex_bounded() {
    let model = Model::new().preemptions(3).choices(1);
    let name = "condvar_with_a_blocking_mutex_bounded";
    explore(name, model, pass_on::<RawPolicyMutex<AlwaysBlock>>);
}

#[test]
fn condvar_notified_with_the_mutex_held() {
    explore("condvar_notified_with_the_mutex_held", Model::new(), || {
        let scene = Scene::<TestAndSet>::new();
        let setter = beside(&scene, |scene| {
            let guard = scene.mutex.lock();
            guard.change(|state| state.ready = true);
            scene.changed.notify_one();
        });
        scene.wait();
        setter.join().unwrap();
        assert!(scene.is_quiet());
    });
}

#[test]
fn condvar_gives_up() {
    explore("condvar_gives_up", Model::new(), || {
        let scene = Scene::<TestAndSet>::new();
        let waiter = beside(&scene, Scene::wait_some_time);
        scene.set();
        let notified = scene.changed.notify_one();
        waiter.join().unwrap();
        assert_eq!(scene.mutex.lock().notified(), usize::from(notified));
        assert!(scene.is_quiet());
    });
}

/// Lets `waiters` threads wait, each of which may give up at any step. A waiter says that it was
/// notified exactly if a notifier has counted it.
fn count_notified<M>(waiters: usize)
where
    M: RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync + 'static,
{
    let scene = Scene::<M>::new();
    let others: Vec<_> = (1..waiters).map(|_| beside(&scene, Scene::wait_some_time)).collect();
    // The last to be spawned: without a preemption all others sleep when it runs.
    let notifier = {
        let scene = scene.clone();
        thread::spawn(move || {
            let one = scene.changed.notify_one();
            scene.set();
            usize::from(one) + scene.changed.notify_all()
        })
    };
    scene.wait_some_time();
    for other in others {
        other.join().unwrap();
    }
    let notified = notifier.join().unwrap();
    assert_eq!(scene.mutex.lock().notified(), notified);
    assert!(scene.is_quiet());
}

#[test]
fn condvar_some_of_two_give_up_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("condvar_some_of_two_give_up_bounded", model, || count_notified::<TestAndSet>(2));
}

#[test]
fn condvar_some_of_three_give_up_bounded() {
    let model = Model::new().preemptions(1).choices(1).objects(24);
    let name = "condvar_some_of_three_give_up_bounded";
    explore(name, model, || count_notified::<TestAndSet>(3));
}

#[test]
fn condvar_some_of_four_give_up_bounded() {
    let model = Model::new().preemptions(0).choices(1).objects(24);
    let name = "condvar_some_of_four_give_up_bounded";
    explore(name, model, || count_notified::<TestAndSet>(4));
}

/// One of two gives up, perhaps just as it is notified: then the other one must still come to know.
#[test]
fn condvar_giving_up_swallows_nothing_bounded() {
    let model = Model::new().preemptions(3).choices(1);
    explore("condvar_giving_up_swallows_nothing_bounded", model, || {
        let scene = Scene::<TestAndSet>::new();
        let impatient = beside(&scene, |scene| {
            scene.wait_some_time();
            let notified = scene.mutex.lock().notified() == 1;
            if notified {
                scene.changed.notify_one();
            }
        });
        let patient = beside(&scene, |scene| {
            scene.wait();
            // A deadline that does not pass in this execution never does.
            scene.changed.notify_one();
        });
        scene.set();
        scene.changed.notify_one();
        impatient.join().unwrap();
        patient.join().unwrap();
        assert!(scene.is_quiet());
    });
}

/// Two threads, each with a mutex of its own: each takes its own back.
#[test]
fn condvar_with_two_mutexes_bounded() {
    explore("condvar_with_two_mutexes_bounded", Model::new().preemptions(2).choices(1), || {
        let mutex =
            || lock_api::Mutex::<TestAndSet, _>::new(Payload(UnsafeCell::new(State::default())));
        let scene = Arc::new(([mutex(), mutex()], Condvar::new()));
        fn wait(scene: &Shared, which: usize) {
            let mut guard = scene.0[which].lock();
            if !guard.is_ready() {
                scene.1.wait(&mut guard);
                assert!(guard.is_ready());
            }
        }
        let first = beside(&scene, |scene| wait(scene, 0));
        let setter = beside(&scene, |scene| {
            scene.0.iter().for_each(|mutex| mutex.lock().change(|state| state.ready = true));
            assert!(scene.1.notify_all() <= 2);
        });
        wait(&scene, 1);
        first.join().unwrap();
        setter.join().unwrap();
    });
}
