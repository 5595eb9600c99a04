//! Tests of the locks with guards that carry nothing, in code written for `lock_api` 0.4.
#![cfg(feature = "lock_api_04")]

use lock_api_04::{Mutex, MutexGuard, RawMutex};
use stanchion_spin::{PreemptionSafe, Recovering, TimePublishedMcs};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(MutexGuard<'static, TimePublishedMcs, u32>: Send);
// These guards must stay with their thread.
assert_not_impl_any!(MutexGuard<'static, PreemptionSafe, u32>: Send);
assert_not_impl_any!(MutexGuard<'static, Recovering, u32>: Send);

/// Increments under the lock in three threads, then tries the held lock.
fn works<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..200).for_each(|_| *mutex.lock() += 1));
        }
    });
    let held = mutex.try_lock().expect("free");
    assert_eq!(*held, 600);
    assert!(mutex.try_lock().is_none());
    assert!(mutex.is_locked());
}

/// Runs each lock of the table that has a guard without a value.
macro_rules! work {
    ([] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: $public:tt,
        guard: $guard:ident,
        $($rest:tt)*
    })+) => {
        $(work!($guard $lock);)+
    };
    (carries $lock:ty) => {};
    ($guard:ident $lock:ty) => {
        works::<$lock>();
    };
}

#[test]
fn with_the_older_traits() {
    stanchion_spin::__locks!(work);
}
