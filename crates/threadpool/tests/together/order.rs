//! The order in which tasks begin, and what keeps any of them from waiting for ever.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

use stanchion_threadpool::strategy::{LocalReadyQueue, SingleLock, Strategy, WorkStealing};
use stanchion_threadpool::{
    ThreadPool, ThreadPoolBuilder, Wait, scope, scope_fifo, spawn, spawn_broadcast, spawn_fifo,
    spawn_future,
};

fn pool<S: Strategy>(threads: usize) -> ThreadPool<S> {
    ThreadPoolBuilder::new().num_threads(threads).build_with().unwrap()
}

const MANY: usize = 1_000;

/// Creates `MANY` tasks by `create` in one task of a pool of one; returns the order of their runs.
fn order(create: impl Fn(usize, mpsc::Sender<usize>) + Send + 'static) -> Vec<usize> {
    let (send, receive) = mpsc::channel();
    pool::<WorkStealing>(1).spawn(move || (0..MANY).for_each(|n| create(n, send.clone())));
    receive.iter().collect()
}

#[test]
fn spawned_tasks_of_a_worker_run_newest_first() {
    let ran = order(|n, send| spawn(move || send.send(n).unwrap()));
    assert!(ran.into_iter().eq((0..MANY).rev()));
}

#[test]
fn fifo_tasks_of_a_worker_run_oldest_first() {
    let ran = order(|n, send| spawn_fifo(move || send.send(n).unwrap()));
    assert!(ran.into_iter().eq(0..MANY));
}

#[test]
fn fifo_tasks_from_outside_run_oldest_first() {
    fn test<S: Strategy>() {
        let (send, receive) = mpsc::channel();
        let pool = pool::<S>(1);
        for n in 0..MANY {
            let send = send.clone();
            pool.spawn_fifo(move || send.send(n).unwrap());
        }
        drop(send);
        assert!(receive.iter().eq(0..MANY), "{}", S::NAME);
    }
    test::<WorkStealing>();
    test::<SingleLock>();
    test::<LocalReadyQueue>();
}

#[test]
fn fifo_tasks_among_others_run_oldest_first() {
    let ran = order(|n, send| {
        if n % 2 == 0 {
            spawn(move || send.send(n).unwrap());
        } else {
            spawn_fifo(move || send.send(n).unwrap());
        }
    });
    assert_eq!(ran.len(), MANY);
    assert!(ran.iter().copied().filter(|n| n % 2 == 0).eq((0..MANY).step_by(2).rev()));
    assert!(ran.iter().copied().filter(|n| n % 2 == 1).eq((1..MANY).step_by(2)));
    // Both kinds are served: the next task is the newest, or the oldest that is to run in order.
    assert_eq!(ran[..4], [1, 998, 3, 996]);
}

/// Whichever workers run them: when one begins, the older ones have begun but for those that other
/// workers hold in their hands.
#[test]
fn fifo_tasks_begin_in_order_on_all_workers() {
    const THREADS: usize = 4;
    struct Begun(Mutex<Vec<bool>>);
    impl Begun {
        fn new() -> Self {
            Self(Mutex::new(vec![false; MANY]))
        }

        fn begin(&self, n: usize) {
            let mut begun = self.0.lock().unwrap();
            begun[n] = true;
            let older = begun[..n].iter().filter(|begun| !**begun).count();
            assert!(older < THREADS, "{older} older ones had not begun");
        }
    }
    let pool = pool::<WorkStealing>(THREADS);
    let begun = Begun::new();
    pool.scope(|s| {
        let begun = &begun;
        (0..MANY).for_each(|n| s.spawn_fifo(move |_| begun.begin(n)));
    });
    assert!(begun.0.lock().unwrap().iter().all(|begun| *begun));
    // Its panics are the scope's; here the panic of a task would go unseen.
    for inside in [false, true] {
        let begun = Arc::new(Begun::new());
        let (send, receive) = mpsc::channel();
        let create = {
            let begun = begun.clone();
            move |n| {
                let (begun, send) = (begun.clone(), send.clone());
                move || {
                    begun.begin(n);
                    send.send(()).unwrap();
                }
            }
        };
        if inside {
            pool.spawn(move || (0..MANY).for_each(|n| spawn_fifo(create(n))));
        } else {
            (0..MANY).for_each(|n| pool.spawn_fifo(create(n)));
            drop(create);
        }
        assert_eq!(receive.iter().count(), MANY, "inside: {inside}");
    }
}

#[test]
fn each_scope_has_an_order_of_its_own() {
    for wait in [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park] {
        let pool = ThreadPoolBuilder::new().num_threads(1).wait(wait).build().unwrap();
        let ran = Mutex::new(Vec::new());
        let push = &|n| ran.lock().unwrap().push(n);
        pool.install(|| {
            scope_fifo(|s| {
                for n in 0..100 {
                    s.spawn_fifo(move |_| {
                        scope(|s| (0..100).for_each(|m| s.spawn_fifo(move |_| push(n * 100 + m))));
                    });
                }
            });
        });
        assert!(ran.lock().unwrap().iter().copied().eq(0..10_000), "{wait:?}");
    }
}

#[test]
fn tasks_that_create_tasks_for_ever_leave_room_for_wake_ups_and_for_outside() {
    fn again(stop: Arc<AtomicBool>, rounds: Arc<AtomicUsize>) {
        rounds.fetch_add(1, SeqCst);
        if !stop.load(SeqCst) {
            spawn(move || again(stop, rounds));
        }
    }
    let pool = pool::<WorkStealing>(1);
    let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (wake, woken) = wake_up();
    let (starting, counted) = (stop.clone(), rounds.clone());
    let handle = pool.install(move || {
        let handle = spawn_future(woken);
        spawn(move || again(starting, counted));
        handle
    });
    while rounds.load(SeqCst) < 1_000 {
        std::thread::yield_now();
    }
    // The wake-up goes behind what is ready, on a worker that always has something newer.
    let (ran, has_run) = mpsc::channel();
    pool.spawn(move || {
        wake.wake();
        ran.send(()).unwrap();
    });
    has_run.recv().unwrap();
    assert_eq!(handle.join(), Ok(()));
    stop.store(true, SeqCst);
    pool.shutdown();
}

#[test]
fn broadcasts_come_before_tasks_that_are_ready() {
    let (send, receive) = mpsc::channel();
    let pool = pool::<WorkStealing>(1);
    pool.install(|| {
        for n in 0..3 {
            let send = send.clone();
            spawn(move || send.send(n).unwrap());
        }
        let last = send.clone();
        spawn_broadcast(move |_| send.send(7).unwrap());
        spawn_broadcast(move |_| last.send(8).unwrap());
    });
    assert!(receive.iter().eq([7, 8, 2, 1, 0]));
}

#[test]
fn fifo_tasks_that_create_fifo_tasks_for_ever_leave_room_for_each_other() {
    fn again(stop: Arc<AtomicBool>) {
        if !stop.load(SeqCst) {
            spawn_fifo(move || again(stop));
        }
    }
    let pool = pool::<WorkStealing>(1);
    let stop = Arc::new(AtomicBool::new(false));
    let (first, last) = (stop.clone(), stop.clone());
    pool.spawn(move || {
        spawn_fifo(move || again(first));
        spawn_fifo(move || last.store(true, SeqCst));
    });
    // Ends only if the second has run.
    pool.shutdown();
    assert!(stop.load(SeqCst));
}

/// A wake-up that can be made once, and a future that waits for it.
fn wake_up() -> (Waking, impl Future<Output = ()> + Send + 'static) {
    let state = Waking::default();
    let waits = state.clone();
    let future = std::future::poll_fn(move |context| {
        let mut state = waits.0.lock().unwrap();
        if state.0 {
            return std::task::Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        std::task::Poll::Pending
    });
    (state, future)
}

#[derive(Clone, Default)]
struct Waking(Arc<Mutex<(bool, Option<std::task::Waker>)>>);

impl Waking {
    fn wake(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        waker.expect("the future waits").wake();
    }
}
