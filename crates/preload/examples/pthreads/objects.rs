//! Mutexes and condition variables of the C library. Their methods return its error numbers.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use libc::{c_int, clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

unsafe extern "C" {
    fn pthread_mutex_clocklock(m: *mut pthread_mutex_t, c: clockid_t, t: *const timespec) -> c_int;
    fn pthread_cond_clockwait(
        c: *mut pthread_cond_t,
        m: *mut pthread_mutex_t,
        clock: clockid_t,
        t: *const timespec,
    ) -> c_int;
}

#[repr(transparent)]
pub(crate) struct Mutex(pub(crate) UnsafeCell<pthread_mutex_t>);
// SAFETY: a mutex may be used by several threads.
unsafe impl Sync for Mutex {}

impl Mutex {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    pub(crate) fn of_kind(set: impl Fn(*mut libc::pthread_mutexattr_t) -> c_int) -> Box<Self> {
        let mutex = Box::new(Self::new());
        mutex.make(set);
        mutex
    }

    pub(crate) fn make(&self, set: impl Fn(*mut libc::pthread_mutexattr_t) -> c_int) {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: initializes them.
        assert_eq!(unsafe { libc::pthread_mutexattr_init(attributes) }, 0);
        assert_eq!(set(attributes), 0);
        // SAFETY: a mutex that no thread uses yet.
        assert_eq!(unsafe { libc::pthread_mutex_init(self.0.get(), attributes) }, 0);
    }

    pub(crate) fn of_type(kind: c_int) -> Box<Self> {
        // SAFETY: attributes that were initialized.
        Self::of_kind(|attributes| unsafe { libc::pthread_mutexattr_settype(attributes, kind) })
    }

    pub(crate) fn lock(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    pub(crate) fn try_lock(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) }
    }

    pub(crate) fn lock_until(&self, until: timespec) -> c_int {
        // SAFETY: a mutex and a time.
        unsafe { libc::pthread_mutex_timedlock(self.0.get(), &until) }
    }

    pub(crate) fn lock_by(&self, clock: clockid_t, until: timespec) -> c_int {
        // SAFETY: a mutex and a time.
        unsafe { pthread_mutex_clocklock(self.0.get(), clock, &until) }
    }

    pub(crate) fn unlock(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) }
    }

    pub(crate) fn destroy(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) }
    }

    pub(crate) fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        assert_eq!(self.lock(), 0);
        let result = body();
        assert_eq!(self.unlock(), 0);
        result
    }
}

#[repr(transparent)]
pub(crate) struct Cond(pub(crate) UnsafeCell<pthread_cond_t>);
// SAFETY: a condition variable may be used by several threads.
unsafe impl Sync for Cond {}

impl Cond {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))
    }

    pub(crate) fn make(&self, set: impl Fn(*mut libc::pthread_condattr_t) -> c_int) {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: initializes them.
        assert_eq!(unsafe { libc::pthread_condattr_init(attributes) }, 0);
        assert_eq!(set(attributes), 0);
        // SAFETY: a condition variable that no thread uses yet.
        assert_eq!(unsafe { libc::pthread_cond_init(self.0.get(), attributes) }, 0);
    }

    pub(crate) fn wait(&self, mutex: &Mutex) -> c_int {
        // SAFETY: a condition variable and a mutex, and this thread holds the mutex.
        unsafe { libc::pthread_cond_wait(self.0.get(), mutex.0.get()) }
    }

    pub(crate) fn wait_until(&self, mutex: &Mutex, until: timespec) -> c_int {
        // SAFETY: as above.
        unsafe { libc::pthread_cond_timedwait(self.0.get(), mutex.0.get(), &until) }
    }

    pub(crate) fn wait_by(&self, mutex: &Mutex, clock: clockid_t, until: timespec) -> c_int {
        // SAFETY: as above.
        unsafe { pthread_cond_clockwait(self.0.get(), mutex.0.get(), clock, &until) }
    }

    pub(crate) fn signal(&self) {
        // SAFETY: a condition variable.
        assert_eq!(unsafe { libc::pthread_cond_signal(self.0.get()) }, 0);
    }

    pub(crate) fn broadcast(&self) {
        // SAFETY: a condition variable.
        assert_eq!(unsafe { libc::pthread_cond_broadcast(self.0.get()) }, 0);
    }

    pub(crate) fn destroy(&self) {
        // SAFETY: a condition variable without waiters.
        assert_eq!(unsafe { libc::pthread_cond_destroy(self.0.get()) }, 0);
    }
}
