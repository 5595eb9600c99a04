//! Each public type is made by its plain constructor, and no type parameter is named.
//!
//! What fails here fails to compile: a constructor that is generic in a defaulted parameter infers
//! nothing, because an expression has no defaults to take it from.

use stanchion_competitive::lock_api::{self, RawMutex, RawRwLock as _};
use stanchion_competitive::policy::{
    self, AlwaysBlock, Contention, FixedSpin, OptimalOnline, Policy,
};
use stanchion_competitive::waits::Recorder;
use stanchion_competitive::{
    Condvar, EventCount, FairMutex, LazyLock, Mutex, Once, OnceLock, PolicyFairMutex, PolicyMutex,
    PolicyRwLock, RawCondvar, RawFairMutex, RawPolicyMutex, RawRwLock, ReentrantMutex, RwLock,
    Semaphore,
};

#[test]
fn mutexes() {
    let mutex = Mutex::new(1);
    assert_eq!(*mutex.lock(), 1);
    let by_default = Mutex::<u32>::default();
    assert_eq!(*by_default.lock(), 0);

    let raw = RawPolicyMutex::new();
    assert!(!raw.is_locked());
    let mutex = PolicyMutex::from_raw(raw, 1);
    assert_eq!(*mutex.lock(), 1);
    assert!(!<RawPolicyMutex>::default().is_locked());
}

#[test]
fn fair_and_reentrant_mutexes() {
    let fair = FairMutex::new(1);
    assert_eq!(*fair.lock(), 1);
    let fair = PolicyFairMutex::from_raw(RawFairMutex::new(), 1);
    assert_eq!(*fair.lock(), 1);
    assert!(!<RawFairMutex>::default().is_locked());
    assert_eq!(*PolicyFairMutex::<_, AlwaysBlock>::new(1).lock(), 1);

    let reentrant = ReentrantMutex::new(1);
    assert_eq!(*reentrant.lock(), 1);
    let by_default = ReentrantMutex::<u32>::default();
    assert_eq!(*by_default.lock(), 0);
}

#[test]
fn locks_for_readers_and_writers() {
    let lock = RwLock::new(1);
    assert_eq!(*lock.read(), 1);
    let by_default = RwLock::<u32>::default();
    assert_eq!(*by_default.read(), 0);

    let raw = RawRwLock::new();
    assert!(!raw.is_locked());
    let lock = lock_api::RwLock::from_raw(raw, 1);
    assert_eq!(*lock.write(), 1);
    assert!(!<RawRwLock>::default().is_locked());

    let behind_another = RawRwLock::with_gate(RawPolicyMutex::with_policy(AlwaysBlock));
    assert!(!behind_another.is_locked());
}

#[test]
fn events() {
    assert_eq!(Condvar::new().notify_all(), 0);
    assert_eq!(Condvar::default().notify_all(), 0);
    assert_eq!(RawCondvar::new().waiting(), 0);
    assert_eq!(<RawCondvar>::default().waiting(), 0);
    assert_eq!(RawCondvar::<RawPolicyMutex<AlwaysBlock>>::with_mutex().waiting(), 0);
    EventCount::new().notify_all();
    EventCount::default().notify_all();
    Once::new().call_once(|| {});
    Once::default().call_once(|| {});
    assert_eq!(OnceLock::new().get_or_init(|| 1), &1);
    assert_eq!(OnceLock::default().get_or_init(|| 1), &1);
    assert_eq!(*LazyLock::new(|| 1), 1);
    let start = 1;
    assert_eq!(*LazyLock::new(move || start), 1);
    assert_eq!(*LazyLock::<u32>::default(), 0);
}

#[test]
fn semaphores() {
    assert_eq!(Semaphore::new(2).available_permits(), 2);
    assert_eq!(Semaphore::with_gate(RawPolicyMutex::new(), 2).available_permits(), 2);
}

/// `policy` decides for a mutex, and for one with recorded waits.
fn decides<P: Policy>(policy: P, recorded: P) {
    let mutex = PolicyMutex::from_raw(RawPolicyMutex::with_policy(policy), 1);
    assert_eq!(*mutex.lock(), 1);
    let recorder = Recorder::with_policy("a mutex that nothing waits for", recorded);
    let mutex = PolicyMutex::from_raw(RawPolicyMutex::with_policy(recorder), 1);
    assert_eq!(*mutex.lock(), 1);
    let lock = PolicyRwLock::<_, P>::new(1);
    assert_eq!(*lock.read(), 1);
}

/// Makes each policy of the table.
macro_rules! each_decides {
    ([] $({
        $test:ident: $policy:ty,
        name: $name:literal,
        public: [$($public:ident $(::$new:ident)?)?],
        $($rest:tt)*
    })+) => {
        $($(decides(policy::$public$(::$new())?, Default::default());)?)+
    };
}

#[test]
fn policies() {
    stanchion_competitive::__policies!(each_decides);
    decides(OptimalOnline::with_threshold(1), Default::default());

    assert_eq!(Recorder::named("never locked").waits().count(), 0);
}

/// `Default` is generic.
#[test]
fn a_policy_with_another_parameter() {
    let contention = Contention::new(None, 1_000);
    let half: FixedSpin<50> = Default::default();
    assert_eq!(half.threshold(&contention), 500);
    assert_eq!(FixedSpin::new().threshold(&contention), 1_000);
}
