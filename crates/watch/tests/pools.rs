//! Workers come and go with their pools, and the program's own hooks are called.
#![cfg(any(feature = "tokio", feature = "rayon"))]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use stanchion_watch::{Pool, Sample, Sampler, State, Watch};

/// Samples until a sample is as expected.
fn until(sampler: &mut Sampler, mut expected: impl FnMut(&Sample) -> bool) -> Sample {
    loop {
        let sample = sampler.sample();
        if expected(&sample) {
            return sample;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A counter, and a hook that counts.
fn counter() -> (Arc<AtomicUsize>, impl Fn() + Clone + Send + Sync + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    (count, move || _ = counted.fetch_add(1, Ordering::Relaxed))
}

#[cfg(feature = "tokio")]
mod tokio_runtimes {
    use stanchion_watch::TokioHooks;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn the_programs_hooks_are_called() {
        let [parks, unparks, starts, stops] = std::array::from_fn(|_| counter());
        let watch = Watch::new();
        let mut builder = Builder::new_multi_thread();
        let hooks = TokioHooks::new()
            .on_thread_park(parks.1)
            .on_thread_unpark(unparks.1)
            .on_thread_stop(stops.1);
        let runtime =
            watch.tokio(&mut builder, hooks).on_thread_start(starts.1).worker_threads(2).build();
        let mut sampler = watch.sampler();
        until(&mut sampler, |sample| sample.workers.len() == 2);
        drop(runtime);
        assert!(sampler.sample().workers.is_empty());
        let [parks, unparks, starts, stops] =
            [parks.0, unparks.0, starts.0, stops.0].map(|count| count.load(Ordering::Relaxed));
        assert!(parks >= 2 && unparks >= 2, "{parks} parks, {unparks} unparks");
        assert_eq!((starts, stops), (2, 2));
    }

    #[test]
    fn threads_for_blocking_calls_are_no_workers() {
        let watch = Watch::new();
        let mut builder = Builder::new_multi_thread();
        let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(1).build();
        let runtime = runtime.unwrap();
        let mut sampler = watch.sampler();
        let (end, ended) = mpsc::channel::<()>();
        let blocking = runtime.spawn_blocking(move || _ = ended.recv());
        let parked = |sample: &Sample| sample.workers.iter().any(|one| one.state == State::Parked);
        let sample = until(&mut sampler, parked);
        assert_eq!(sample.workers.len(), 1, "{sample:#?}");
        assert_eq!(sample.workers[0].pool, Pool::Tokio);
        drop(end);
        runtime.block_on(blocking).unwrap();
        assert_eq!(sampler.sample().workers.len(), 1);
    }

    #[test]
    fn a_runtime_of_one_thread_is_left_when_the_program_says_so() {
        let watch = Watch::new();
        let mut builder = Builder::new_current_thread();
        let runtime = watch.tokio(&mut builder, TokioHooks::new()).build().unwrap();
        let mut sampler = watch.sampler();
        for _ in 0..2 {
            runtime.block_on(async { tokio::task::yield_now().await });
            // It parks while it waits for the other thread, which sends once it has seen that.
            let (send, received) = tokio::sync::oneshot::channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut parks = 0;
                    let sample = until(&mut sampler, |sample| {
                        parks += sample.workers.iter().map(|one| one.parks).sum::<u64>();
                        sample.workers.iter().any(|one| one.state == State::Parked)
                    });
                    assert_eq!(sample.workers.len(), 1, "{sample:#?}");
                    assert!(parks > 0, "{sample:#?}");
                    send.send(()).unwrap();
                });
                runtime.block_on(received).unwrap();
            });
            assert_eq!(sampler.sample().workers.len(), 1);
            watch.leave();
            assert!(sampler.sample().workers.is_empty());
        }
    }

    #[test]
    fn a_thread_that_hands_its_worker_on_leaves() {
        let watch = Watch::builder().threshold(Duration::from_millis(5)).build();
        let mut builder = Builder::new_multi_thread();
        let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(1).build();
        let runtime = runtime.unwrap();
        let mut sampler = watch.sampler();
        let first = until(&mut sampler, |sample| sample.workers.len() == 1);
        let (end, ended) = mpsc::channel::<()>();
        let leaving = watch.clone();
        let task = runtime.spawn(async move {
            tokio::task::block_in_place(move || {
                leaving.leave();
                _ = ended.recv();
            });
        });
        // Another thread has the worker now.
        let is_another = |sample: &Sample| match &sample.workers[..] {
            [one] => one.thread.is_none() || one.thread != first.workers[0].thread,
            _ => false,
        };
        until(&mut sampler, is_another);
        drop(end);
        runtime.block_on(task).unwrap();
    }

    #[test]
    fn a_stall_that_is_over_is_told_as_over() {
        let watch = Watch::builder().threshold(Duration::from_millis(5)).build();
        let mut builder = Builder::new_multi_thread();
        let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(1).build();
        let runtime = runtime.unwrap();
        let mut sampler = watch.sampler();
        until(&mut sampler, |sample| sample.workers.len() == 1);
        let (end, ended) = mpsc::channel::<()>();
        let task = runtime.spawn(async move { _ = ended.recv() });
        // The task waits for `ended`, and not the worker for a processor.
        let lasts = |sample: &Sample| {
            let is_blocked = |state| matches!(state, State::Blocked(_) | State::Awake);
            sample.stalls().any(|(one, stall)| is_blocked(one.state) && !stall.is_over)
        };
        until(&mut sampler, lasts);
        assert!(lasts(&sampler.sample()), "it lasts until `end` is dropped");
        drop(end);
        runtime.block_on(task).unwrap();
        let parked = |sample: &Sample| sample.workers[0].state == State::Parked;
        let mut over = 0;
        until(&mut sampler, |sample| {
            over += sample.stalls().filter(|(_, stall)| stall.is_over).count();
            parked(sample)
        });
        assert!(over > 0, "a stall that was told ends once");
        let next = sampler.sample();
        assert!(next.stalls().all(|(_, stall)| !stall.is_over), "{next:#?}");
    }
}

#[cfg(all(feature = "rayon", target_os = "linux"))]
#[test]
fn rayons_threads_run_and_block_as_the_kernel_says() {
    use std::hint::black_box;
    use std::sync::atomic::AtomicBool;

    use stanchion_watch::PoolHooks;

    let [starts, exits] = std::array::from_fn(|_| counter());
    let watch = Watch::new();
    let hooks =
        PoolHooks::new().start_handler(move |_| starts.1()).exit_handler(move |_| exits.1());
    let builder = rayon::ThreadPoolBuilder::new().num_threads(2);
    let pool = watch.rayon(builder, hooks).build().unwrap();
    pool.broadcast(|_| ());
    let mut sampler = watch.sampler();
    // Without work both wait in `futex`.
    let is_idle = |one: &stanchion_watch::WorkerSample| match one.state {
        State::Blocked(place) => place.name() == Some("futex"),
        _ => false,
    };
    let idle = until(&mut sampler, |sample| sample.workers.iter().all(is_idle));
    assert_eq!(idle.workers.len(), 2, "{idle:#?}");
    assert_eq!(idle.workers.iter().filter_map(|one| one.index).sum::<usize>(), 1, "{idle:#?}");

    let ends = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ends);
    pool.spawn(move || {
        while !end.load(Ordering::Relaxed) {
            black_box(());
        }
    });
    let computes = |one: &stanchion_watch::WorkerSample| {
        let has_run = one.parts.running + one.parts.ready > one.parts.blocked;
        matches!(one.state, State::Running | State::Ready) && has_run
    };
    let busy = until(&mut sampler, |sample| sample.workers.iter().any(computes));
    assert_eq!(busy.stalls().count(), 0, "rayon does not tell when it parks: {busy:#?}");
    ends.store(true, Ordering::Relaxed);

    until(&mut sampler, |sample| sample.workers.iter().all(is_idle));

    // A task that reads is blocked in `read`.
    let (mut reader, writer) = std::io::pipe().unwrap();
    pool.spawn(move || _ = std::io::Read::read(&mut reader, &mut [0]));
    let reads = |one: &stanchion_watch::WorkerSample| match one.state {
        State::Blocked(place) => place.name() == Some("read"),
        _ => false,
    };
    until(&mut sampler, |sample| sample.workers.iter().any(reads));
    drop(writer);
    drop(pool);
    until(&mut sampler, |sample| sample.workers.is_empty());
    assert_eq!((starts.0.load(Ordering::Relaxed), exits.0.load(Ordering::Relaxed)), (2, 2));
}

#[test]
fn a_callback_is_called_until_the_watching_is_dropped() {
    let watch = Watch::new();
    let worker = watch.enter("mine");
    let (send, samples) = mpsc::channel();
    let watching = watch.spawn(Duration::from_millis(1), move |sample| {
        send.send(sample.clone()).unwrap();
    });
    let first = samples.recv().unwrap();
    assert_eq!(first.workers[0].pool, Pool::Other("mine"));
    assert_eq!(first.workers[0].pool.to_string(), "mine");
    worker.park();
    while samples.recv().unwrap().workers[0].state != State::Parked {}
    drop(watching.unwrap());
    // The sender is gone.
    while samples.try_recv().is_ok() {}
    assert_eq!(samples.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

#[cfg(all(feature = "tokio", tokio_unstable))]
#[test]
fn polls_are_counted_and_their_task_is_told() {
    use stanchion_watch::TokioHooks;

    let [before, after] = std::array::from_fn(|_| counter());
    let watch = Watch::builder().threshold(Duration::from_millis(5)).build();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let hooks = TokioHooks::new()
        .on_before_task_poll(move |_| before.1())
        .on_after_task_poll(move |_| after.1());
    let runtime = watch.tokio(&mut builder, hooks).worker_threads(1).build().unwrap();
    let mut sampler = watch.sampler();
    until(&mut sampler, |sample| sample.workers.iter().any(|one| one.state == State::Parked));
    runtime.block_on(runtime.spawn(async {})).unwrap();
    let (end, ended) = mpsc::channel::<()>();
    let line = line!() + 1;
    let task = runtime.spawn(async move { _ = ended.recv() });
    let mut polls = 0;
    let stalled = until(&mut sampler, |sample| {
        polls += sample.workers[0].polls;
        sample.stalls().any(|(_, stall)| !stall.is_over)
    });
    let told = stalled.stalls().last().unwrap().1.task.unwrap();
    assert_eq!((told.spawned_at.file(), told.spawned_at.line()), (file!(), line));
    assert_eq!(told.id.to_string(), task.id().to_string());
    assert_eq!(polls, 2);
    drop(end);
    runtime.block_on(task).unwrap();
    drop(runtime);
    assert_eq!((before.0.load(Ordering::Relaxed), after.0.load(Ordering::Relaxed)), (2, 2));
}
