//! Nobody honours requests in a model: every thread may stand still anywhere. What is checked is that each is taken back, by its own thread.

use core::cell::Cell;

use crate::preemption::Means;

crate::thread_local! {
    /// The open requests of this thread.
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
    Means::Nobody
}
