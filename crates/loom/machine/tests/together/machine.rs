//! Models of loom's machine itself. It must allow what the real machine may do, and must report
//! what is wrong there.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stanchion_machine::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, Spin, WaitPolicy, retry_until, wait_until};
use stanchion_machine::{Model, choice, thread};
use stanchion_machine_loom as stanchion_machine;
use stanchion_models::explore;

use Ordering::{Acquire, Relaxed, Release};

/// Runs `model`, and returns its panic message if it fails.
fn failure(model: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(model)).err()?;
    let message = panic.downcast_ref::<String>().cloned();
    Some(
        message.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default(),
    )
}

/// A message that one thread passes to another.
struct Message {
    /// The content. The sender writes it once, before it changes `ready`.
    payload: UnsafeCell<u32>,
    /// 5 until the payload is written, 6 afterwards. The sender writes it.
    ready: AtomicU32,
}

// SAFETY: the sender writes the payload before it changes `ready`. The receiver reads the payload
// after it has seen that change. The models check this.
unsafe impl Sync for Message {}
// SAFETY: no field belongs to one thread.
unsafe impl Send for Message {}

impl Message {
    const INIT: Self = Self { payload: UnsafeCell::new(0), ready: AtomicU32::new(5) };
}

fn pass_a_message(store: Ordering, load: Ordering) {
    explore("machine::a_message_is_passed", Model::new(), move || {
        let message = Arc::new(Message::INIT);
        let sender = {
            let message = message.clone();
            thread::spawn(move || {
                // SAFETY: the receiver does not read before `ready` changes.
                message.payload.with_mut(|payload| unsafe { *payload = 7 });
                message.ready.store(6, store);
            })
        };
        let seen = wait_until(&message.ready, load, |ready| ready != 5, &mut Spin::start());
        assert_eq!(seen, 6);
        // SAFETY: the sender does not use the payload after it has changed `ready`.
        assert_eq!(message.payload.with(|payload| unsafe { *payload }), 7);
        sender.join().unwrap();
    });
}

#[test]
fn a_const_built_atomic_starts_with_its_value_and_synchronizes() {
    pass_a_message(Release, Acquire);
}

#[test]
fn a_weakened_store_is_reported() {
    let report =
        failure(|| pass_a_message(Relaxed, Acquire)).expect("a Relaxed store must be caught");
    assert!(report.contains("Causality violation"), "{report}");
}

#[test]
fn a_weakened_load_is_reported() {
    let report =
        failure(|| pass_a_message(Release, Relaxed)).expect("a Relaxed load must be caught");
    assert!(report.contains("Causality violation"), "{report}");
}

#[test]
fn const_built_integers_count_across_the_wrap() {
    stanchion_machine::model(|| {
        let byte = AtomicU8::new(254);
        assert_eq!(byte.fetch_add(3, Relaxed), 254);
        assert_eq!(byte.load(Relaxed), 1);
        assert_eq!(byte.compare_exchange(1, 255, Relaxed, Relaxed), Ok(1));
        assert_eq!(byte.fetch_or(1, Relaxed), 255);
        assert_eq!(byte.fetch_and(0x0f, Relaxed), 255);
        assert_eq!(byte.fetch_xor(0x01, Relaxed), 0x0f);
        assert_eq!(byte.swap(9, Relaxed), 0x0e);
        let flag = AtomicBool::new(true);
        assert!(flag.swap(false, Relaxed));
        assert!(!flag.load(Relaxed));
        let mut target = 3;
        let pointer = AtomicPtr::fresh(&raw mut target);
        assert_eq!(pointer.load(Relaxed), &raw mut target);
    });
}

#[test]
fn a_swap_loop_is_explored_to_the_end() {
    explore("machine::a_swap_loop_is_explored_to_the_end", Model::new(), || {
        let locked = Arc::new(AtomicBool::new(false));
        let take = |locked: &AtomicBool| {
            retry_until(|| (!locked.swap(true, Acquire)).then_some(()), &mut <Patient>::start());
            locked.store(false, Release);
        };
        let other = {
            let locked = locked.clone();
            thread::spawn(move || take(&locked))
        };
        take(&locked);
        other.join().unwrap();
    });
}

#[test]
fn a_wait_without_an_end_is_reported() {
    let report = failure(|| {
        stanchion_machine::model(|| {
            let never = AtomicU32::new(0);
            wait_until(&never, Acquire, |value| value != 0, &mut Spin::start());
        });
    });
    assert!(report.is_some());
}

#[test]
fn a_pointer_to_a_fresh_object_must_be_published() {
    // A mutant of a queue's enqueue publishes the node's address with a Relaxed store. So the
    // node's creation is not ordered before its use.
    let publish = |order: Ordering| {
        failure(move || {
            explore("machine::a_fresh_object_is_published", Model::new(), move || {
                let slot = Arc::new(AtomicPtr::<AtomicU32>::new(core::ptr::null_mut()));
                let owner = {
                    let slot = slot.clone();
                    thread::spawn(move || {
                        slot.store(Box::into_raw(Box::new(AtomicU32::fresh(1))), order)
                    })
                };
                let node = wait_until(&*slot, Acquire, |node| !node.is_null(), &mut Spin::start());
                // SAFETY: `Box::into_raw` made the pointer, and no other thread frees the node.
                let node = unsafe { Box::from_raw(node) };
                assert_eq!(node.load(Relaxed), 1);
                owner.join().unwrap();
            });
        })
    };
    assert_eq!(publish(Release), None);
    assert!(publish(Relaxed).is_some(), "an object that is not published must be reported");
}

#[test]
fn choices_are_explored_in_every_combination() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let log = seen.clone();
    explore("machine::choices_are_explored_in_every_combination", Model::new(), move || {
        let other = thread::spawn(choice);
        let mine = (choice(), choice());
        log.lock().unwrap().insert((mine, other.join().unwrap(), choice()));
    });
    let seen = seen.lock().unwrap();
    // The first thread makes two explored choices, and the other thread one. The first thread's
    // third choice is beyond the bound.
    assert_eq!(seen.len(), 8);
    assert!(seen.iter().all(|(_, _, beyond)| !beyond));
}

#[test]
fn a_weak_exchange_fails_for_no_reason_when_asked_to() {
    let failed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = failed.clone();
    let model = Model::new().weak_failures(1);
    explore("machine::a_weak_exchange_fails_when_asked_to", model, move || {
        let word = AtomicU32::new(4);
        if word.compare_exchange_weak(4, 5, Acquire, Relaxed) == Err(4) {
            count.fetch_add(1, Relaxed);
        }
    });
    assert_eq!(failed.load(Relaxed), 1);
}

#[test]
fn running_out_of_const_built_objects_says_what_to_do() {
    let report = failure(|| {
        Model::new().objects(1).check(|| {
            let _ = AtomicU32::new(0).load(Relaxed);
            let _ = AtomicU32::new(0).load(Relaxed);
        });
    });
    assert!(report.unwrap().contains("Model::objects"));
}

/// A thread loads many atomics if a choice says so, and another thread loads the last of them. In
/// the first executions the choice does not say so, and after them the pools have room for fewer
/// atomics. To loom, the thread that loads one first then makes it, and the other may not know of
/// it.
#[test]
fn pools_that_are_too_small_raise_no_alarm() {
    explore("machine::pools_that_are_too_small", Model::new().choices(1), || {
        let words = Arc::new([const { AtomicU32::new(1) }; 14]);
        let other = {
            let words = words.clone();
            thread::spawn(move || words[13].load(Relaxed))
        };
        let seen = if choice() { &words[..] } else { &words[..0] };
        assert_eq!(seen.iter().map(|word| word.load(Relaxed)).sum::<u32>() % 14, 0);
        assert_eq!(other.join().unwrap(), 1);
    });
}

/// As above, where no error may be taken for one of a small pool.
#[test]
fn an_error_beside_pools_that_are_too_small_is_reported() {
    let report = failure(|| {
        Model::new().check(|| {
            let words = [const { AtomicU32::new(1) }; 14];
            if choice() {
                let sum: u32 = words.iter().map(|word| word.load(Relaxed)).sum();
                assert_eq!(sum, 15, "a false sum");
            }
        });
    });
    assert!(report.unwrap().contains("a false sum"));
}

#[test]
fn touching_an_object_outside_a_model_says_what_to_do() {
    let report = failure(|| {
        let _ = std::thread::spawn(|| AtomicU32::new(0).load(Relaxed))
            .join()
            .map_err(std::panic::resume_unwind);
    });
    assert!(report.unwrap().contains("machine::model"));
}

stanchion_machine::global! {
    static SHARED: AtomicU32 = AtomicU32::new(3);
}

#[test]
fn a_global_starts_anew_in_every_execution() {
    explore("machine::a_global_starts_anew_in_every_execution", Model::new(), || {
        let other = thread::spawn(|| SHARED.fetch_add(1, Relaxed));
        let mine = SHARED.fetch_add(1, Relaxed);
        let theirs = other.join().unwrap();
        assert_eq!(mine + theirs, 7);
    });
}
