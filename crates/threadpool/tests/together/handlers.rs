//! Threads of a pool that the program starts, and a thread that joins the pool it builds.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use stanchion_threadpool::strategy::{SingleLock, Strategy, WorkStealing};
use stanchion_threadpool::{
    BuildError, ResizeError, ThreadBuilder, ThreadPoolBuilder, Wait, Worker, blocking,
    current_thread_index, join, scope, spawn, yield_now,
};

const WAITS: [Wait; 4] = [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park];

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Runs `body` on a thread of its own, so that what it leaves behind is gone afterwards.
fn on_a_thread(body: impl FnOnce() + Send + 'static) {
    if let Err(payload) = thread::spawn(body).join() {
        resume_unwind(payload);
    }
}

#[test]
fn handler_starts_every_thread_and_shutdown_waits_for_them() {
    for wait in WAITS {
        let mut handles = Vec::new();
        let pool = ThreadPoolBuilder::new()
            .num_threads(3)
            .wait(wait)
            .stack_size(1 << 20)
            .thread_name(|index| format!("named-{index}"))
            .spawn_handler(|thread| {
                assert_eq!(thread.index(), handles.len());
                assert_eq!(thread.stack_size(), Some(1 << 20));
                let name = thread.name().unwrap().to_owned();
                let handle = thread::Builder::new().name(name).spawn(move || {
                    thread.run();
                    assert_eq!(current_thread_index(), None);
                })?;
                handles.push(handle);
                Ok(())
            })
            .build()
            .unwrap();
        assert_eq!(pool.install(|| fib(15)), 610);
        let names = pool.broadcast(|_| thread::current().name().map(str::to_owned));
        let expected = (0..3).map(|index| Some(format!("named-{index}")));
        assert!(names.into_iter().eq(expected), "{wait:?}");
        // There is no spare thread, so the task just blocks.
        assert_eq!(pool.install(|| blocking(|| 7)), 7);
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let done = done.clone();
            pool.spawn(move || {
                done.fetch_add(1, SeqCst);
            });
        }
        pool.shutdown();
        assert_eq!(done.load(SeqCst), 100);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    }
}

#[test]
fn handler_s_error_is_the_builder_s_and_no_thread_is_left() {
    let mut handles = Vec::new();
    let built = ThreadPoolBuilder::new()
        .num_threads(3)
        .spawn_handler(|thread| {
            if thread.index() == 2 {
                return Err(io::Error::other("no more"));
            }
            handles.push(thread::spawn(|| thread.run()));
            Ok(())
        })
        .build();
    let error = built.unwrap_err();
    assert!(matches!(error, BuildError::Spawn { started: 2, asked: 3, .. }), "{error}");
    assert!(error.to_string().contains("no more"), "{error}");
    assert_eq!(handles.len(), 2);
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[test]
fn pool_does_without_a_thread_that_never_runs() {
    let mut handles = Vec::new();
    let pool = ThreadPoolBuilder::new()
        .num_threads(3)
        .spawn_handler(|thread| {
            if thread.index() == 1 {
                drop(thread);
            } else {
                handles.push(thread::spawn(|| thread.run()));
            }
            Ok(())
        })
        .build()
        .unwrap();
    assert_eq!(pool.broadcast(Worker::index), [0, 2]);
    assert_eq!(pool.install(|| fib(15)), 610);
    pool.shutdown();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[test]
fn pool_whose_threads_the_program_starts_shrinks_and_does_not_grow() {
    let handler = |thread: ThreadBuilder| {
        thread::spawn(|| thread.run());
        Ok(())
    };
    let builder = ThreadPoolBuilder::new().num_threads(3).max_threads(9);
    let pool = builder.spawn_handler(handler).build().unwrap();
    assert!(matches!(pool.set_num_threads(4), Err(ResizeError::TooManyThreads { most: 3, .. })));
    pool.set_num_threads(1).unwrap();
    assert_eq!(pool.broadcast(Worker::index), [0]);
    // A thread that has not left yet may stay.
    match pool.set_num_threads(3) {
        Ok(()) => {}
        Err(ResizeError::Spawn { source, .. }) => {
            assert_eq!(source.kind(), io::ErrorKind::Unsupported);
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(pool.install(|| fib(15)), 610);
    pool.shutdown();
}

#[test]
fn scoped_threads_borrow_and_have_ended_afterwards() {
    thread_local! {
        static SEEN: Cell<usize> = const { Cell::new(0) };
    }
    let (number, ended) = (Cell::new(5).into_inner(), AtomicUsize::new(0));
    let number = &number;
    let wrapper = |thread: ThreadBuilder| {
        SEEN.set(*number);
        thread.run();
        ended.fetch_add(1, SeqCst);
    };
    let builder = || ThreadPoolBuilder::new().num_threads(3);
    let result = builder().build_scoped(wrapper, |pool| {
        assert_eq!(pool.broadcast(|_| SEEN.get()), [5, 5, 5]);
        pool.install(|| fib(15))
    });
    assert_eq!(result.unwrap(), 610);
    assert_eq!(ended.swap(0, SeqCst), 3);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        builder().build_scoped(wrapper, |pool| {
            pool.spawn(|| thread::sleep(Duration::from_millis(5)));
            panic!("inside");
        })
    }));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"inside"));
    assert_eq!(ended.swap(0, SeqCst), 3, "they have ended although the caller unwound");
    let after = |thread: ThreadBuilder| {
        let index = thread.index();
        thread.run();
        assert!(index != 1, "afterwards");
    };
    let caught = catch_unwind(AssertUnwindSafe(|| builder().build_scoped(after, |_| ())));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"afterwards"));
}

fn current_thread_is_the_first_worker<S: Strategy>() {
    for (threads, wait) in [1, 2, 4].into_iter().flat_map(|threads| WAITS.map(|w| (threads, w))) {
        on_a_thread(move || {
            let builder = || ThreadPoolBuilder::new().num_threads(threads).wait(wait);
            let pool = builder().use_current_thread().build_with::<S>().unwrap();
            assert_eq!(current_thread_index(), Some(0));
            assert!(matches!(
                builder().use_current_thread().build(),
                Err(BuildError::CurrentThreadAlreadyInPool)
            ));
            assert_eq!(pool.current_num_threads(), threads);
            assert_eq!(fib(15), 610);
            assert_eq!(pool.install(current_thread_index), Some(0));
            assert!(pool.broadcast(Worker::index).into_iter().eq(0..threads));
            let count = AtomicUsize::new(0);
            scope(|s| {
                for _ in 0..100 {
                    s.spawn(|_| {
                        count.fetch_add(1, SeqCst);
                    });
                }
            });
            assert_eq!(count.into_inner(), 100);
            let (send, receive) = mpsc::channel();
            for n in 0..100 {
                let send = send.clone();
                spawn(move || spawn(move || send.send(n).unwrap()));
            }
            drop(send);
            assert!(yield_now().is_some());
            pool.shutdown();
            assert_eq!(receive.iter().count(), 100, "shutdown runs what was spawned");
            // Alone from here on.
            assert_eq!(current_thread_index(), Some(0));
            assert_eq!(fib(10), 55);
        });
    }
}

#[test]
fn current_thread_is_the_first_worker_under_work_stealing() {
    current_thread_is_the_first_worker::<WorkStealing>();
}

#[test]
fn current_thread_is_the_first_worker_under_a_single_lock() {
    current_thread_is_the_first_worker::<SingleLock>();
}

#[test]
fn other_threads_run_what_the_current_thread_spawns_while_it_blocks() {
    on_a_thread(|| {
        let pool = ThreadPoolBuilder::new().num_threads(2).use_current_thread().build().unwrap();
        for _ in 0..50 {
            let (send, receive) = mpsc::channel();
            spawn(move || send.send(current_thread_index()).unwrap());
            assert_eq!(receive.recv(), Ok(Some(1)));
        }
        drop(pool);
    });
}

#[test]
fn broadcast_of_another_thread_reaches_the_current_one_when_it_yields() {
    on_a_thread(|| {
        let pool = ThreadPoolBuilder::new().num_threads(2).use_current_thread().build().unwrap();
        let pool = Arc::new(pool);
        let other = pool.clone();
        let asks = thread::spawn(move || other.broadcast(Worker::index));
        while !asks.is_finished() {
            yield_now();
        }
        assert_eq!(asks.join().unwrap(), [0, 1]);
    });
}

#[test]
fn pool_that_is_dropped_ends_without_its_current_thread() {
    on_a_thread(|| {
        let (send, receive) = mpsc::channel();
        let (begun, ended) = (send.clone(), send);
        let pool = ThreadPoolBuilder::new()
            .num_threads(3)
            .use_current_thread()
            .start_handler(move |index| begun.send((true, index)).unwrap())
            .exit_handler(move |index| ended.send((false, index)).unwrap())
            .build()
            .unwrap();
        let (ran, has_run) = mpsc::channel();
        spawn(move || ran.send(()).unwrap());
        drop(pool);
        has_run.recv().expect("the others run what is ready");
        let mut told: Vec<_> = (0..4).map(|_| receive.recv().unwrap()).collect();
        told.sort_unstable();
        assert_eq!(told, [(false, 1), (false, 2), (true, 1), (true, 2)]);
    });
}

#[test]
fn what_the_current_thread_leaves_is_run_by_others_or_dropped() {
    // Others run it.
    let (send, receive) = mpsc::channel();
    let builder = || ThreadPoolBuilder::new().use_current_thread();
    let build = move || builder().num_threads(2).build().unwrap();
    let handle = thread::spawn(move || {
        let pool = build();
        for n in 0..10 {
            let send = send.clone();
            spawn(move || send.send(n).unwrap());
        }
        pool
    });
    let pool = handle.join().unwrap();
    assert_eq!(receive.iter().count(), 10);
    assert_eq!(pool.install(|| fib(10)), 55);
    pool.shutdown();
    // There are no others.
    let kept = Arc::new(());
    let owned = kept.clone();
    on_a_thread(move || {
        let pool = builder().num_threads(1).build().unwrap();
        spawn(move || drop(owned));
        drop(pool);
    });
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn broadcast_reaches_those_that_are_left_when_the_current_thread_has_ended() {
    for threads in [1, 3] {
        let builder = ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
        let pool = thread::spawn(move || builder.build().unwrap()).join().unwrap();
        let left: Vec<usize> = (1..threads).collect();
        assert_eq!(pool.broadcast(Worker::index), left);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        pool.spawn_broadcast(move |_| _ = counted.fetch_add(1, SeqCst));
        pool.scope(|scope| scope.spawn_broadcast(|_, _| _ = calls.fetch_add(1, SeqCst)));
        pool.shutdown();
        assert_eq!(calls.load(SeqCst), 2 * left.len());
    }
}

#[test]
fn broadcast_to_a_current_thread_that_ends_returns() {
    for _ in 0..50 {
        let (send, receive) = mpsc::channel();
        let owner = thread::spawn(move || {
            let builder = ThreadPoolBuilder::new().num_threads(2).use_current_thread();
            let pool = Arc::new(builder.build().unwrap());
            send.send(pool.clone()).unwrap();
            pool
        });
        let pool = receive.recv().unwrap();
        let reached = pool.broadcast(Worker::index);
        assert!(reached == [0, 1] || reached == [1], "{reached:?}");
        drop(owner.join().unwrap());
    }
}

#[test]
fn current_thread_leaves_if_the_pool_cannot_be_built() {
    on_a_thread(|| {
        let refuse = |_: ThreadBuilder| Err(io::Error::other("refused"));
        let builder = || ThreadPoolBuilder::new().num_threads(2).use_current_thread();
        assert!(builder().spawn_handler(refuse).build().is_err());
        assert_eq!(current_thread_index(), None);
        let unwind = |_: ThreadBuilder| -> io::Result<()> { panic!("refused") };
        assert!(catch_unwind(|| builder().spawn_handler(unwind).build()).is_err());
        assert_eq!(current_thread_index(), None);
        builder().build().unwrap().shutdown();
    });
}

/// The current thread is no reason to look for its tasks again and again.
#[test]
fn workers_beside_a_current_thread_sleep_until_they_are_woken() {
    on_a_thread(|| {
        let pool = ThreadPoolBuilder::new().num_threads(3).use_current_thread().build().unwrap();
        assert_eq!(fib(10), 55);
        // Whatever still went on has ended in one of the spans.
        let quiet = (0..100).any(|_| {
            let before = pool.metrics();
            thread::sleep(Duration::from_millis(50));
            let after = pool.metrics();
            before.asleep == 2 && after.total().parks == before.total().parks
        });
        assert!(quiet);
        pool.shutdown();
    });
}

#[test]
fn pool_works_without_its_first_thread() {
    let mut handles = Vec::new();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .spawn_handler(|thread| {
            if thread.index() > 0 {
                handles.push(thread::Builder::new().spawn(move || thread.run())?);
            }
            Ok(())
        })
        .build()
        .unwrap();
    let (send, receive) = mpsc::channel();
    pool.spawn(move || send.send(current_thread_index()).unwrap());
    assert_eq!(receive.recv(), Ok(Some(1)), "the second thread runs tasks");
    assert_eq!(pool.install(current_thread_index), Some(1));
    pool.shutdown();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[test]
fn scoped_threads_have_ended_also_if_a_panic_s_payload_panics() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload that panics when it is dropped");
        }
    }
    let ended = AtomicUsize::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let wrapper = |thread: ThreadBuilder| {
            let index = thread.index();
            thread.run();
            match index {
                0 => panic!("the first panic"),
                1 => std::panic::panic_any(Bomb),
                _ => thread::sleep(Duration::from_millis(200)),
            }
            ended.fetch_add(1, SeqCst);
        };
        ThreadPoolBuilder::new().num_threads(3).build_scoped(wrapper, |_| ())
    }));
    assert_eq!(ended.load(SeqCst), 1, "the third thread has ended");
    let payload = result.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"the first panic"));
}
