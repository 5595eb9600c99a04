//! The journal's tests: real runs by default, every interleaving under `--cfg stanchion_loom`.

use journal::Journal;
use stanchion::Mutex;
use stanchion::machine::sync::Arc;
use stanchion::machine::{Model, thread};

#[test]
fn writers_and_a_reader_agree() {
    let explored = Model::new().check(|| {
        let journal = Arc::new(Journal::<u32, 2>::new());
        let other = {
            let journal = journal.clone();
            thread::spawn(move || journal.append(1).unwrap())
        };
        let mine = journal.append(2).unwrap();
        // The thread that appended an entry can read it at once.
        assert_eq!(journal.get(mine), Some(2));
        if let Some(first) = journal.get(0) {
            assert!(first == 1 || first == 2);
        }
        let theirs = other.join().unwrap();
        assert_eq!(journal.get(theirs), Some(1));
        assert_ne!(mine, theirs);
        assert_eq!(journal.append(3), Err(3));
    });
    println!("model writers_and_a_reader_agree: {explored}");
}

#[test]
fn a_reader_that_takes_no_lock_sees_whole_entries() {
    let explored = Model::new().check(|| {
        let journal = Arc::new(Journal::<u32, 1>::new());
        let writer = {
            let journal = journal.clone();
            thread::spawn(move || journal.append(5).unwrap())
        };
        assert!(matches!(journal.get(0), None | Some(5)));
        writer.join().unwrap();
        assert_eq!(journal.get(0), Some(5));
    });
    println!("model a_reader_that_takes_no_lock_sees_whole_entries: {explored}");
}

/// The journal under a mutex that puts its waiters to sleep: a sleeping thread is woken, and finds
/// the other's entries.
#[test]
fn writers_that_sleep_for_one_another_agree() {
    let explored = Model::new().preemptions(2).check(|| {
        let entries = Arc::new(Mutex::new([0_u32; 2]));
        let other = {
            let entries = entries.clone();
            thread::spawn(move || entries.lock()[0] += 1)
        };
        {
            let mut entries = entries.lock();
            entries[0] += 1;
            entries[1] = entries[0];
        }
        other.join().unwrap();
        let entries = entries.lock();
        assert_eq!(entries[0], 2);
        assert!(entries[1] == 1 || entries[1] == 2);
    });
    println!("model writers_that_sleep_for_one_another_agree: {explored}");
}

/// The models above can fail: the same publication with `Relaxed` is a data race, and loom reports
/// it.
#[cfg(stanchion_loom)]
#[test]
#[should_panic]
fn a_relaxed_publication_is_caught() {
    use stanchion::machine::atomic::{AtomicUsize, Ordering::Relaxed};
    use stanchion::machine::cell::UnsafeCell;

    struct Entry(UnsafeCell<u32>, AtomicUsize);
    // SAFETY: untrue. The model is to find that.
    unsafe impl Sync for Entry {}

    Model::new().check(|| {
        let entry = Arc::new(Entry(UnsafeCell::new(0), AtomicUsize::new(0)));
        let writer = {
            let entry = entry.clone();
            thread::spawn(move || {
                // SAFETY: alone before the store, if only the store published it.
                entry.0.with_mut(|value| unsafe { *value = 1 });
                entry.1.store(1, Relaxed);
            })
        };
        if entry.1.load(Relaxed) == 1 {
            // SAFETY: as above.
            assert_eq!(entry.0.with(|value| unsafe { *value }), 1);
        }
        writer.join().unwrap();
    });
}

/// A stack of nodes that are made by the ordinary `new`: a publication with `Relaxed` is caught
/// too, and the report names the lines in this file.
#[cfg(stanchion_loom)]
mod ordinary_stack {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::ptr;

    use stanchion::machine::atomic::{AtomicPtr, Ordering};
    use stanchion::machine::cell::UnsafeCell;

    use super::*;

    struct Node {
        /// The value.
        value: UnsafeCell<u32>,
        /// The next node, or null.
        next: AtomicPtr<Node>,
    }

    struct Stack {
        /// The first node, or null.
        head: AtomicPtr<Node>,
        /// The ordering of the publication.
        publish: Ordering,
    }

    impl Stack {
        fn push(&self, value: u32) {
            let mut head = self.head.load(Ordering::Relaxed);
            let node = Node { value: UnsafeCell::new(value), next: AtomicPtr::new(head) };
            let node = Box::into_raw(Box::new(node));
            while let Err(now) =
                self.head.compare_exchange(head, node, self.publish, Ordering::Relaxed)
            {
                head = now;
                // SAFETY: no other thread has the node yet.
                unsafe { &*node }.next.store(head, Ordering::Relaxed);
            }
        }

        /// Takes all values, and returns their sum.
        fn take_all(&self) -> u32 {
            let mut node = self.head.swap(ptr::null_mut(), Ordering::Acquire);
            let mut sum = 0;
            while !node.is_null() {
                // SAFETY: the exchange has made this thread the owner of the whole list.
                let taken = unsafe { Box::from_raw(node) };
                node = taken.next.load(Ordering::Relaxed);
                sum += taken.value.into_inner();
            }
            sum
        }
    }

    fn two_push(publish: Ordering) {
        Model::new().check(move || {
            let stack = Arc::new(Stack { head: AtomicPtr::default(), publish });
            let other = {
                let stack = stack.clone();
                thread::spawn(move || stack.push(1))
            };
            stack.push(2);
            let early = stack.take_all();
            other.join().unwrap();
            assert_eq!(early + stack.take_all(), 3);
        });
    }

    #[test]
    fn its_release_suffices() {
        two_push(Ordering::Release);
    }

    #[test]
    fn a_relaxed_publication_is_caught() {
        let check = catch_unwind(AssertUnwindSafe(|| two_push(Ordering::Relaxed)));
        let report = *check.unwrap_err().downcast::<String>().unwrap();
        assert!(report.contains("made by `new`"), "{report}");
        assert_eq!(report.matches("tests/model.rs").count(), 2, "{report}");
    }
}
