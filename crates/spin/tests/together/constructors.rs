//! Each lock is made by its plain constructor, and no type parameter is named.
//!
//! These tests fail by not compiling. A constructor that is generic in a defaulted parameter infers
//! nothing, because an expression has no defaults to take it from.

use stanchion_spin::Backoff;
use stanchion_spin::lock_api::{Mutex, RawMutex};

/// Locks once with a raw lock that its plain constructor has made.
fn locks_once<R: RawMutex>(raw: R) {
    assert!(!raw.is_locked());
    let mutex = Mutex::from_raw(raw, 1);
    *mutex.lock() += 1;
    assert_eq!(mutex.into_inner(), 2);
}

/// Defines one test for each lock of the table, from its mutex and the mutex's guard.
macro_rules! constructors {
    ([] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: [
            $($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?
        ],
        $($rest:tt)*
    })+) => {$($(
        #[test]
        fn $test() {
            use stanchion_spin::{$raw, $mutex, $guard};

            locks_once($raw::new());

            static IN_A_STATIC: $mutex<u32> = $mutex::new(1);
            assert_eq!(*IN_A_STATIC.lock(), 1);

            let mutex = $mutex::new(1);
            let mut guard: $guard<'_, _> = mutex.lock();
            *guard += 1;
            drop(guard);
            assert_eq!(mutex.into_inner(), 2);

            let by_default = $mutex::<u32>::default();
            assert_eq!(by_default.into_inner(), 0);
            locks_once(<$raw>::default());
        }
    )?)+};
}

stanchion_spin::__locks!(constructors);

/// Tests for parameters that a caller chooses: in the order of the raw lock, after the payload.
mod chosen {
    use super::*;
    use stanchion_spin::contention::Read;
    use stanchion_spin::{
        Anderson, Clh, Mcs, PolicyAndersonMutex, PolicyClhMutex, PolicyMcsMutex,
        PolicyPreemptionSafeMutex, PolicyRecoveringMutex, PolicyTestAndSetMutex, PolicyTicketMutex,
        PolicyTimePublishedMcsMutex, PreemptionSafe, Recovering, Spin, TestAndSet, Ticket,
        TimePublishedMcs,
    };

    #[test]
    fn a_raw_lock_takes_them_by_with_policy() {
        locks_once(Anderson::<4>::with_policy());
        locks_once(Anderson::<4, Spin>::with_policy());
        locks_once(Clh::<Spin>::with_policy());
        locks_once(Mcs::<Spin>::with_policy());
        locks_once(TestAndSet::<Read>::with_policy());
        locks_once(TestAndSet::<Read, Spin>::with_policy());
        locks_once(Ticket::<Spin>::with_policy());
        locks_once(PreemptionSafe::<Read>::with_policy());
        locks_once(Recovering::<Spin>::with_policy());
        locks_once(TimePublishedMcs::<Spin, 3>::with_policy());
    }

    #[test]
    fn a_mutex_takes_them_by_its_second_alias() {
        assert_eq!(*PolicyAndersonMutex::<_, 4>::new(1).lock(), 1);
        assert_eq!(*PolicyAndersonMutex::<_, 4, Spin>::new(1).lock(), 1);
        assert_eq!(*PolicyClhMutex::<_, Spin>::new(1).lock(), 1);
        assert_eq!(*PolicyMcsMutex::<_, Spin>::new(1).lock(), 1);
        assert_eq!(*PolicyTestAndSetMutex::<_, Read>::new(1).lock(), 1);
        assert_eq!(*PolicyTestAndSetMutex::<_, Read, Spin>::new(1).lock(), 1);
        assert_eq!(*PolicyTicketMutex::<_, Spin>::new(1).lock(), 1);
        assert_eq!(*PolicyPreemptionSafeMutex::<_, Read>::new(1).lock(), 1);
        assert_eq!(*PolicyRecoveringMutex::<_, Spin>::new(1).lock(), 1);
        assert_eq!(*PolicyTimePublishedMcsMutex::<_, Spin, 3>::new(1).lock(), 1);
    }
}

#[test]
fn backoff() {
    assert_eq!(Backoff::new().failures(), 0);
    assert_eq!(Backoff::default().failures(), 0);
}
