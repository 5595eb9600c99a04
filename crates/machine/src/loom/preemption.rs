//! Requests not to be preempted. No scheduler honours them in a model, because every thread may
//! stop anywhere. The model checks that each thread takes its own requests back.

use core::cell::Cell;

use crate::preemption::Means;

crate::thread_local! {
    /// The number of open requests of this thread.
    static REQUESTS: Cell<u32> = Cell::new(0);
}

pub(crate) fn keep() {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
}

pub(crate) fn thank() -> bool {
    REQUESTS.with(|requests| {
        let open = requests.get();
        assert!(open > 0, "a thread took back a request not to be preempted that it had not made");
        requests.set(open - 1);
    });
    false
}

pub(crate) fn requests() -> u32 {
    REQUESTS.with(Cell::get)
}

pub(crate) fn means() -> Means {
    Means::None
}
