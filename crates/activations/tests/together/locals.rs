//! Locals: that each thread has its own, and that they are dropped on it before it can be joined.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use stanchion_activations::{Builder, Runtime, current, local, park, spawn, yield_now};

local! {
    static NUMBER: Cell<usize> = Cell::new(7);
    static LIST: RefCell<Vec<usize>> = RefCell::default();
}

#[test]
fn each_thread_has_its_own() {
    for processors in 1..=4 {
        let runtime = Runtime::new(processors).unwrap();
        let threads: Vec<_> = (0..200)
            .map(|number| {
                runtime.spawn(move || {
                    assert_eq!(NUMBER.with(Cell::get), 7);
                    NUMBER.with(|own| own.set(number));
                    for round in 0..10 {
                        yield_now();
                        LIST.with(|list| list.borrow_mut().push(round));
                        assert_eq!(NUMBER.with(Cell::get), number);
                    }
                    LIST.with(|list| list.take())
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), (0..10).collect::<Vec<_>>());
        }
    }
    assert_eq!(NUMBER.with(Cell::get), 7);
}

/// Tells when it is dropped.
struct Tells(&'static str, RefCell<Option<Sender<(&'static str, u64)>>>);

impl Drop for Tells {
    fn drop(&mut self) {
        yield_now();
        if let Some(sends) = self.1.take() {
            let id = format!("{:?}", current().id());
            let id = id.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
            sends.send((self.0, id)).unwrap();
        }
    }
}

local! {
    static FIRST: Tells = Tells("first", RefCell::default());
    static SECOND: Tells = Tells("second", RefCell::default());
    static MADE_BY_A_DROP: Tells = Tells("made by a drop", RefCell::default());
}

struct MakesAnother(Sender<(&'static str, u64)>);

impl Drop for MakesAnother {
    fn drop(&mut self) {
        assert!(HAS_ANOTHER.try_with(|_| ()).is_err(), "it is being dropped");
        MADE_BY_A_DROP.with(|tells| tells.1.replace(Some(self.0.clone())));
    }
}

local! {
    static HAS_ANOTHER: RefCell<Option<MakesAnother>> = RefCell::new(None);
}

#[test]
fn they_are_dropped_on_the_thread_the_youngest_first_before_it_is_joined() {
    let runtime = Runtime::new(1).unwrap();
    let (sends, receives) = channel();
    let body = move || {
        FIRST.with(|tells| tells.1.replace(Some(sends.clone())));
        SECOND.with(|tells| tells.1.replace(Some(sends.clone())));
        HAS_ANOTHER.with(|place| place.replace(Some(MakesAnother(sends.clone()))));
        let id = format!("{:?}", current().id());
        id.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap()
    };
    let id = runtime.spawn(body.clone()).join().unwrap();
    let told: Vec<_> = receives.try_iter().collect();
    assert_eq!(told, [("made by a drop", id), ("second", id), ("first", id)]);

    // A kernel thread likewise, but when it is joined.
    let id = std::thread::spawn(body).join().unwrap();
    let told: Vec<_> = receives.try_iter().collect();
    assert_eq!(told, [("made by a drop", id), ("second", id), ("first", id)]);
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("of a local");
    }
}

local! {
    static BOMB: Bomb = Bomb;
    static BOMB_TOO: Bomb = Bomb;
    static BELOW: Tells = Tells("below", RefCell::default());
}

#[test]
fn join_reports_a_local_that_panics_on_drop() {
    let runtime = Runtime::new(1).unwrap();
    let (sends, receives) = channel();
    let below = sends.clone();
    let handle = runtime.spawn(move || {
        BELOW.with(|tells| tells.1.replace(Some(below)));
        BOMB.with(|_| ());
        BOMB_TOO.with(|_| ());
    });
    assert_eq!(handle.join().unwrap_err().downcast_ref(), Some(&"of a local"));
    assert_eq!(receives.try_iter().count(), 1, "the others are dropped all the same");

    let handle = runtime.spawn(|| {
        BOMB.with(|_| ());
        panic!("of the thread");
    });
    assert_eq!(handle.join().unwrap_err().downcast_ref(), Some(&"of the thread"));
    assert_eq!(runtime.run(|| 1), 1, "the runtime goes on");
}

static MADE: AtomicUsize = AtomicUsize::new(0);

local! {
    static FAILS_AT_FIRST: usize = {
        assert!(MADE.fetch_add(1, Ordering::Relaxed) > 0, "at first");
        5
    };
    static ASKS_FOR_ITSELF: usize = ASKS_FOR_ITSELF.with(|own| *own);
}

#[test]
fn making_one_may_fail_and_be_tried_again() {
    let runtime = Runtime::new(1).unwrap();
    runtime.run(|| {
        panic::catch_unwind(|| FAILS_AT_FIRST.with(|_| ())).unwrap_err();
        assert_eq!(FAILS_AT_FIRST.with(|number| *number), 5);
        panic::catch_unwind(|| ASKS_FOR_ITSELF.with(|_| ())).unwrap_err();
    });
}

#[test]
fn they_follow_a_thread_that_migrates() {
    let runtime = Runtime::new(4).unwrap();
    let threads: Vec<_> = (0..20)
        .map(|number| {
            let body = move || {
                NUMBER.with(|own| own.set(number));
                for _ in 0..100 {
                    yield_now();
                    assert_eq!(NUMBER.with(Cell::get), number);
                }
            };
            // SAFETY: it uses nothing of the kernel thread's.
            unsafe { Builder::new().on(&runtime).spawn_migratable(body) }
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_kernel_thread_parks_in_its_last_destructors() {
    struct Parks(Option<stanchion_activations::JoinHandle<()>>);
    impl Drop for Parks {
        fn drop(&mut self) {
            let me = current();
            let waker = std::thread::spawn(move || me.unpark());
            park();
            waker.join().unwrap();
            // And waits for a thread of a runtime.
            let thread = self.0.take().unwrap();
            thread.thread().unpark();
            thread.join().unwrap();
            assert_eq!(NUMBER.with(Cell::get), 7);
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<Parks>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<Parks>> = const { RefCell::new(None) };
    }
    let runtime = Runtime::new(1).unwrap();
    let (one, two) = (runtime.spawn(park), runtime.spawn(park));
    std::thread::spawn(move || {
        EARLY.with(|place| *place.borrow_mut() = Some(Parks(Some(one))));
        // The crate's own is between them, whichever goes first.
        NUMBER.with(|number| number.set(9));
        LATE.with(|place| *place.borrow_mut() = Some(Parks(Some(two))));
        NUMBER.with(|number| number.set(7));
    })
    .join()
    .unwrap();
    runtime.run(|| spawn(|| ()).join().unwrap());
}
