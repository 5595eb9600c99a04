//! Models of atomics and cells made by the ordinary `const fn new` while threads run: a use that
//! nothing orders after the creation is reported, with the caller's lines, and no other use is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use stanchion_machine::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Fresh, Ordering, fence,
};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until, wait_until};
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// Checks `body`, and prints the number of executions.
fn explore(name: &str, body: impl Fn() + Send + Sync + 'static) {
    println!("model machine::made_by_new::{name}: {}", Model::new().check(body));
}

/// Returns the report on `body`, which must fail.
fn report(body: impl Fn() + Send + Sync + 'static) -> String {
    let check = catch_unwind(AssertUnwindSafe(|| stanchion_machine::model(body)));
    let panic = check.expect_err("the model must fail");
    *panic.downcast::<String>().expect("a report with words")
}

/// Checks that `report` is about an object made in this file and used in this file.
#[track_caller]
fn assert_names_the_callers_lines(report: &str) {
    assert!(report.contains("Causality violation"), "{report}");
    assert_eq!(report.matches(file!()).count(), 2, "{report}");
    assert!(!report.contains("src/loom"), "{report}");
}

/// A Treiber stack in the ordinary way, with the ordering of the exchange that publishes a node.
struct Stack {
    /// The top node, or null. Each push and each pop exchanges it.
    head: AtomicPtr<Node>,
    /// The ordering of the exchange in `push`. Written when the stack is made.
    publish: Ordering,
}

/// A node of the stack.
struct Node {
    /// The pushed value. The pusher writes it before it publishes the node.
    value: UnsafeCell<u32>,
    /// The node below. The pusher writes it before it publishes the node.
    next: AtomicPtr<Node>,
}

// SAFETY: a node belongs to the thread that takes it off the stack. The models check that.
unsafe impl Sync for Stack {}
// SAFETY: as above.
unsafe impl Send for Stack {}

impl Stack {
    const fn new(publish: Ordering) -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()), publish }
    }

    fn push(&self, value: u32) {
        let mut head = self.head.load(Relaxed);
        let node = Node { value: UnsafeCell::new(value), next: AtomicPtr::new(head) };
        let node = Box::into_raw(Box::new(node));
        while let Err(now) = self.head.compare_exchange(head, node, self.publish, Relaxed) {
            head = now;
            // SAFETY: no other thread has the node.
            unsafe { &*node }.next.store(head, Relaxed);
        }
    }

    /// Takes the last value. Only one thread may pop, because nodes are freed at once.
    fn pop(&self) -> Option<u32> {
        let mut head = self.head.load(Acquire);
        loop {
            // SAFETY: only this thread frees nodes.
            let next = unsafe { head.as_ref() }?.next.load(Relaxed);
            match self.head.compare_exchange(head, next, Acquire, Acquire) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        // SAFETY: the node is off the stack, and only this thread takes nodes.
        let node = unsafe { Box::from_raw(head) };
        // SAFETY: as above.
        Some(node.value.with(|value| unsafe { *value }))
    }
}

/// One thread pushes while the body pops.
fn pop_beside_push(publish: Ordering) {
    let stack = Arc::new(Stack::new(publish));
    let pusher = {
        let stack = stack.clone();
        thread::spawn(move || {
            stack.push(1);
            stack.push(2);
        })
    };
    let mut taken = Vec::from_iter(stack.pop());
    pusher.join().unwrap();
    taken.extend(std::iter::from_fn(|| stack.pop()));
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
}

/// The body pushes while one thread pops.
fn push_beside_pop(publish: Ordering) {
    let stack = Arc::new(Stack::new(publish));
    let popper = {
        let stack = stack.clone();
        thread::spawn(move || stack.pop())
    };
    stack.push(1);
    assert!(popper.join().unwrap().or_else(|| stack.pop()) == Some(1));
}

#[test]
fn a_treiber_stack_in_the_ordinary_way_passes() {
    explore("treiber_pop_beside_push", || pop_beside_push(Release));
    explore("treiber_push_beside_pop", || push_beside_pop(Release));
}

#[test]
fn a_treiber_stack_that_publishes_too_weakly_is_reported_when_the_body_pops() {
    assert_names_the_callers_lines(&report(|| pop_beside_push(Relaxed)));
}

#[test]
fn a_treiber_stack_that_publishes_too_weakly_is_reported_when_the_body_pushes() {
    assert_names_the_callers_lines(&report(|| push_beside_pop(Relaxed)));
}

/// The body makes a `T` while a thread runs, and publishes it by `publish`. The thread uses it.
fn handed_over<T: 'static>(
    publish: Ordering,
    make: impl Fn() -> T,
    use_it: impl Fn(&T) + Copy + 'static,
) {
    let slot = Arc::new(AtomicPtr::<T>::default());
    let user = {
        let slot = slot.clone();
        thread::spawn(move || {
            // SAFETY: the body frees the published object after it has joined this thread.
            if let Some(object) = unsafe { slot.load(Acquire).as_ref() } {
                use_it(object);
            }
        })
    };
    let object = Box::into_raw(Box::new(make()));
    slot.store(object, publish);
    user.join().unwrap();
    // SAFETY: the thread has ended.
    drop(unsafe { Box::from_raw(object) });
}

#[test]
fn every_kind_of_object_is_checked() {
    /// Hands over an object made by `new`: first with Release, then with Relaxed, which is too
    /// weak.
    macro_rules! check {
        ($($name:ident: $new:expr, $use_it:expr;)+) => {$(
            let right = || handed_over(Release, || $new, |object| _ = $use_it(object));
            explore(concat!("new_", stringify!($name)), right);
            let wrong = || handed_over(Relaxed, || $new, |object| _ = $use_it(object));
            assert_names_the_callers_lines(&report(wrong));
        )+};
    }
    check! {
        bool: AtomicBool::new(true), |flag: &AtomicBool| flag.load(Relaxed);
        u8: AtomicU8::new(1), |byte: &AtomicU8| byte.store(2, Relaxed);
        u32: AtomicU32::new(1), |word: &AtomicU32| word.swap(2, Relaxed);
        u64: AtomicU64::new(1), |word: &AtomicU64| word.fetch_add(2, Relaxed);
        usize: AtomicUsize::new(1), |word: &AtomicUsize| word.fetch_max(2, Relaxed);
        pointer: AtomicPtr::new(&raw mut TARGET), |pointer: &AtomicPtr<u8>| pointer.load(Relaxed);
        default: AtomicU32::default(), |word: &AtomicU32| word.fetch_or(2, Relaxed);
        cell_read: UnsafeCell::new(1), |cell: &UnsafeCell<u32>| cell.with(|_| ());
        cell_written: UnsafeCell::new(1), |cell: &UnsafeCell<u32>| cell.with_mut(|_| ());
    }
}

static mut TARGET: u8 = 0;

#[test]
fn fresh_objects_are_checked_by_loom() {
    let text = report(|| {
        handed_over(Relaxed, || AtomicU32::fresh(1), |word| assert_eq!(word.load(Relaxed), 1))
    });
    assert_names_the_callers_lines(&text);
    let text = report(|| handed_over(Relaxed, || UnsafeCell::fresh(1), |cell| cell.with(|_| ())));
    assert_names_the_callers_lines(&text);
    explore("fresh_cell", || {
        handed_over(Release, || UnsafeCell::fresh(1), |cell| cell.with_mut(|_| ()));
    });
}

#[test]
fn a_race_in_a_cell_made_before_the_threads_names_both_accesses() {
    let text = report(|| {
        let lock = Arc::new(Lock::new(0));
        let other = {
            let lock = lock.clone();
            thread::spawn(move || lock.add())
        };
        // SAFETY: none, on purpose. The lock is not held, and the model must find that.
        lock.value.with_mut(|value| unsafe { *value += 1 });
        other.join().unwrap();
    });
    assert_eq!(text.matches(file!()).count(), 2, "{text}");
}

/// The maker synchronizes with the user before it makes the object. That does not order the
/// creation.
#[test]
fn an_earlier_synchronization_does_not_order_a_later_creation() {
    fn model(publish: Ordering, make: fn(u32) -> AtomicU32) {
        let ready = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(AtomicPtr::<AtomicU32>::default());
        let maker = {
            let (ready, slot) = (ready.clone(), slot.clone());
            thread::spawn(move || {
                ready.store(true, Release);
                slot.store(Box::into_raw(Box::new(make(3))), publish);
            })
        };
        wait_until(&*ready, Acquire, |ready| ready, &mut <Patient>::start());
        // SAFETY: only this thread frees the object, and it does so below.
        if let Some(object) = unsafe { slot.load(Acquire).as_ref() } {
            assert_eq!(object.load(Relaxed), 3);
        }
        maker.join().unwrap();
        // SAFETY: the maker has ended.
        drop(unsafe { Box::from_raw(slot.load(Relaxed)) });
    }
    explore("made_after_a_synchronization", || model(Release, |value| AtomicU32::new(value)));
    assert_names_the_callers_lines(&report(|| model(Relaxed, |value| AtomicU32::new(value))));
    assert_names_the_callers_lines(&report(|| model(Relaxed, |value| AtomicU32::fresh(value))));
}

/// The object is a queue node in a function's frame, like the node of a waiter of an MCS lock.
#[test]
fn a_node_on_a_threads_stack_is_checked() {
    #[inline(never)]
    fn wait_in_line(slot: &AtomicPtr<AtomicBool>, publish: Ordering) {
        let passed = AtomicBool::new(false);
        slot.store((&raw const passed).cast_mut(), publish);
        wait_until(&passed, Acquire, |passed| passed, &mut <Patient>::start());
    }

    fn model(publish: Ordering) {
        let slot = Arc::new(AtomicPtr::<AtomicBool>::default());
        let waiter = {
            let slot = slot.clone();
            thread::spawn(move || wait_in_line(&slot, publish))
        };
        let node = wait_until(&*slot, Acquire, |node| !node.is_null(), &mut <Patient>::start());
        // SAFETY: the waiter leaves its frame after this store.
        unsafe { &*node }.store(true, Release);
        waiter.join().unwrap();
    }
    explore("node_on_a_stack", || model(Release));
    assert_names_the_callers_lines(&report(|| model(Relaxed)));
}

/// An ordinary test-and-set lock: a word and a cell, made by a `const fn new`.
struct Lock {
    /// Set while a thread holds the lock. Each thread sets it to acquire the lock.
    taken: AtomicBool,
    /// The protected value. Only the holder writes it.
    value: UnsafeCell<u32>,
}

// SAFETY: `taken` keeps all but one thread away from `value`. The models check that.
unsafe impl Sync for Lock {}
// SAFETY: no field belongs to one thread.
unsafe impl Send for Lock {}

impl Lock {
    const fn new(value: u32) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    fn add(&self) -> u32 {
        let take = || (!self.taken.swap(true, Acquire)).then_some(());
        retry_until(take, &mut <Patient>::start());
        let value = self.value.with_mut(|value| {
            // SAFETY: the lock is held.
            unsafe { *value += 1 };
            // SAFETY: as above.
            unsafe { *value }
        });
        self.taken.store(false, Release);
        value
    }
}

#[test]
fn a_lock_made_before_the_threads_passes() {
    explore("lock_before_the_threads", || {
        let lock = Arc::new(Lock::new(0));
        let other = {
            let lock = lock.clone();
            thread::spawn(move || lock.add())
        };
        assert_eq!(lock.add() + other.join().unwrap(), 3);
    });
}

#[test]
fn a_lock_in_a_static_passes() {
    static LOCK: Lock = Lock::new(0);
    explore("lock_in_a_static", || {
        let other = thread::spawn(|| LOCK.add());
        LOCK.add();
        other.join().unwrap();
    });
}

#[test]
fn a_lock_in_a_global_passes() {
    stanchion_machine::global! {
        static LOCKS: Box<[Lock]> = Box::new([Lock::new(0), Lock::new(0)]);
    }
    explore("lock_in_a_global", || {
        let other = thread::spawn(|| LOCKS[1].add());
        assert_eq!(LOCKS[1].add() + other.join().unwrap(), 3);
    });
}

#[test]
fn a_lock_made_outside_the_model_passes() {
    let lock = std::sync::Arc::new(Lock::new(0));
    explore("lock_outside_the_model", move || {
        let other = {
            let lock = lock.clone();
            thread::spawn(move || lock.add())
        };
        lock.add();
        other.join().unwrap();
    });
}

#[test]
fn a_lock_made_by_a_thread_and_sent_to_another_passes() {
    explore("lock_sent", || {
        handed_over(Release, || Lock::new(0), |lock| assert_eq!(lock.add(), 1));
    });
    explore("lock_sent_by_fences", || {
        let slot = Arc::new(AtomicPtr::<Lock>::default());
        let user = {
            let slot = slot.clone();
            thread::spawn(move || {
                let lock = slot.load(Relaxed);
                fence(Acquire);
                // SAFETY: the body frees the lock after it has joined this thread.
                if let Some(lock) = unsafe { lock.as_ref() } {
                    lock.add();
                }
            })
        };
        let lock = Box::into_raw(Box::new(Lock::new(0)));
        fence(SeqCst);
        slot.store(lock, Relaxed);
        user.join().unwrap();
        // SAFETY: the thread has ended.
        drop(unsafe { Box::from_raw(lock) });
    });
    // Loom itself publishes the lock: by the end of a thread, then by an `Arc`.
    explore("lock_returned", || {
        let other = thread::spawn(|| Box::new(Lock::new(0)));
        let lock = other.join().unwrap();
        assert_eq!(lock.add(), 1);
    });
    explore("lock_left_in_an_arc", || {
        let cell = Arc::new(UnsafeCell::new(None));
        struct Share(Arc<UnsafeCell<Option<Box<Lock>>>>);
        let mine = Share(cell.clone());
        let other = thread::spawn(move || {
            let Share(cell) = mine;
            // SAFETY: the body uses the cell only after this thread has dropped its `Arc`.
            cell.with_mut(|lock| unsafe { *lock = Some(Box::new(Lock::new(4))) });
            drop(cell);
            thread::yield_now();
        });
        let mut cell = cell;
        if let Some(cell) = Arc::get_mut(&mut cell)
            && let Some(lock) = cell.get_mut().take()
        {
            assert_eq!(lock.add(), 5);
        }
        other.join().unwrap();
    });
}

/// A use is checked against the moment of the memory in which the object lies at that use.
#[test]
fn a_lock_that_moves_after_its_first_use_passes() {
    #[inline(never)]
    fn used_on_the_stack() -> Lock {
        let lock = Lock::new(0);
        assert_eq!(lock.add(), 1);
        lock
    }
    explore("lock_that_moves", || {
        handed_over(Release, used_on_the_stack, |lock| assert_eq!(lock.add(), 2));
    });
    assert_names_the_callers_lines(&report(|| {
        handed_over(Relaxed, used_on_the_stack, |lock| assert_eq!(lock.add(), 2));
    }));
}

#[test]
fn memory_that_is_used_again_belongs_to_its_last_allocation() {
    explore("memory_used_again", || {
        let slot = Arc::new(AtomicPtr::<AtomicU32>::default());
        let other = {
            let slot = slot.clone();
            thread::spawn(move || {
                drop(Box::new(AtomicU32::new(1)));
                let object = slot.swap(ptr::null_mut(), AcqRel);
                if !object.is_null() {
                    // SAFETY: this thread has taken the object out of the slot.
                    assert_eq!(unsafe { Box::from_raw(object) }.load(Relaxed), 2);
                }
            })
        };
        slot.store(Box::into_raw(Box::new(AtomicU32::new(2))), Release);
        other.join().unwrap();
        let object = slot.swap(ptr::null_mut(), Relaxed);
        if !object.is_null() {
            // SAFETY: the thread has ended.
            drop(unsafe { Box::from_raw(object) });
        }
    });
}

/// Tests `into_inner` and `get_mut`, which [`Stack::pop`] could use in place of `with`.
#[test]
fn exclusive_access_to_a_cell_is_checked() {
    fn model(publish: Ordering, last: fn(UnsafeCell<u32>) -> u32) {
        let ready = Arc::new(AtomicPtr::<UnsafeCell<u32>>::default());
        let cell = Box::into_raw(Box::new(UnsafeCell::new(1)));
        struct Owned(*mut UnsafeCell<u32>);
        let owned = Owned(cell);
        let writer = {
            let ready = ready.clone();
            thread::spawn(move || {
                let Owned(cell) = { owned };
                // SAFETY: the body takes the cell after it has been published.
                unsafe { &*cell }.with_mut(|value| unsafe { *value = 2 });
                ready.store(cell, publish);
            })
        };
        let cell = wait_until(&*ready, Acquire, |cell| !cell.is_null(), &mut <Patient>::start());
        // SAFETY: the writer does not use the cell after it has published it.
        assert_eq!(last(*unsafe { Box::from_raw(cell) }), 2);
        writer.join().unwrap();
    }
    let taken_out = UnsafeCell::into_inner;
    explore("into_inner", move || model(Release, taken_out));
    explore("get_mut", || model(Release, |mut cell| *cell.get_mut()));
    assert!(report(move || model(Relaxed, taken_out)).contains("Causality violation"));
    let text = report(|| model(Relaxed, |mut cell| *cell.get_mut()));
    assert!(text.contains("Causality violation"), "{text}");
}

#[test]
fn a_pointer_given_to_new_is_the_value() {
    static mut HERE: u8 = 0;
    static POINTER: AtomicPtr<u8> = AtomicPtr::new(&raw mut HERE);
    stanchion_machine::model(|| {
        assert_eq!(POINTER.load(Relaxed), &raw mut HERE);
        let mut there = 1;
        let there = &raw mut there;
        let pointer = AtomicPtr::new(there);
        assert_eq!(pointer.load(Relaxed), there);
        assert_eq!(pointer.compare_exchange(there, ptr::null_mut(), AcqRel, Acquire), Ok(there));
        assert!(pointer.load(Relaxed).is_null());
        assert!(pointer.swap(there, Relaxed).is_null());
        // SAFETY: the pointer is to a live local of this frame.
        assert_eq!(unsafe { *pointer.load(Relaxed) }, 1);
        POINTER.store(ptr::null_mut(), Relaxed);
        assert!(POINTER.load(Relaxed).is_null());
    });
}

/// Publishes a cell from a deeper frame, so that moments of deeper frames come and go.
#[inline(never)]
fn publish_from_a_deeper_frame(slot: &AtomicPtr<UnsafeCell<u32>>) {
    slot.store(Box::into_raw(Box::new(UnsafeCell::new(1))), Release);
}

/// The maker continues after another thread has taken its object and freed it.
#[test]
fn an_object_that_another_thread_has_freed_passes() {
    explore("an_object_that_another_thread_has_freed_passes", || {
        let slot = Arc::new(AtomicPtr::new(ptr::null_mut()));
        let other = Arc::new(AtomicU32::new(0));
        let taker = {
            let (slot, other) = (slot.clone(), other.clone());
            thread::spawn(move || {
                let cell: *mut UnsafeCell<u32> = slot.load(Acquire);
                if cell.is_null() {
                    return false;
                }
                // SAFETY: the maker does not use the cell after it has published it.
                let mut cell = unsafe { Box::from_raw(cell) };
                cell.get_mut();
                drop(cell);
                let _ = other.load(Relaxed);
                true
            })
        };
        other.store(1, Relaxed);
        publish_from_a_deeper_frame(&slot);
        other.store(2, Relaxed);
        if !taker.join().unwrap() {
            // SAFETY: this thread made the cell, and the taker has not taken it.
            drop(unsafe { Box::from_raw(slot.load(Relaxed)) });
        }
    });
}
