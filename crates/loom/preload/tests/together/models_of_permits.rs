//! Models of the permits of the shim: a thread with a permit has made its call before something is
//! installed.

#[path = "../../../../preload/src/linux/permits.rs"]
mod permits;

use permits::Permits;
use stanchion_machine::Model;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::thread::yield_now;
use stanchion_models::{beside, explore};

/// The generation of the process.
const GENERATION: u32 = 1;

/// A process with its filters.
struct Process<const COUNTS: usize> {
    /// The permits of its threads.
    permits: Permits<COUNTS>,
    /// The filters that the kernel knows.
    filters: UnsafeCell<u32>,
}

impl<const COUNTS: usize> Process<COUNTS> {
    fn new() -> Self {
        Self { permits: Permits::new(), filters: UnsafeCell::new(0) }
    }

    /// Makes a call, if there is a permit. Returns whether there was.
    fn call(&self, index: usize) -> bool {
        let permit = self.permits.permit(index, GENERATION);
        if permit.is_some() {
            // SAFETY: loom checks that no other thread writes.
            let filters = self.filters.with(|filters| unsafe { *filters });
            assert_eq!(filters, 0, "a call after a filter");
        }
        permit.is_some()
    }

    /// Installs a filter by `call`, and waits as long as there are permits.
    fn install(&self, call: impl FnOnce() -> bool) -> bool {
        let wait = |is_first: bool| {
            assert!(is_first);
            yield_now();
            true
        };
        self.permits.install(GENERATION, wait, call)
    }

    /// Installs a filter that the kernel takes.
    fn install_one(&self) {
        let is_there = self.install(|| {
            // SAFETY: loom checks that no other thread reads or writes.
            self.filters.with_mut(|filters| unsafe { *filters += 1 });
            true
        });
        assert!(is_there);
    }
}

/// A thread makes a call while another one installs a filter.
#[test]
fn a_call_meets_a_filter() {
    explore("permits::a_call_meets_a_filter", Model::new(), || {
        let process = Arc::new(Process::<1>::new());
        let caller = beside(&process, |process| {
            process.call(0);
        });
        process.install_one();
        caller.join().unwrap();
        assert!(process.permits.is_installed() && !process.permits.is_used(GENERATION));
        assert!(!process.call(0));
    });
}

/// A thread makes two calls, each with a permit of its own, while another one installs a filter.
#[test]
fn two_calls_meet_a_filter() {
    explore("permits::two_calls_meet_a_filter", Model::new(), || {
        let process = Arc::new(Process::<1>::new());
        let caller = beside(&process, |process| (process.call(0), process.call(0)));
        process.install_one();
        let (first, second) = caller.join().unwrap();
        assert!(first || !second, "a filter that went away");
    });
}

/// A thread makes a call while another one tries to install a filter, which is refused.
#[test]
fn a_call_meets_a_refused_filter() {
    explore("permits::a_call_meets_a_refused_filter", Model::new(), || {
        let process = Arc::new(Process::<2>::new());
        let caller = beside(&process, |process| {
            process.call(1);
        });
        assert!(!process.install(|| false));
        caller.join().unwrap();
        assert!(!process.permits.is_installed() && !process.permits.is_used(GENERATION));
        assert!(process.call(0), "nothing is installed");
    });
}
