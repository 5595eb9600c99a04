//! The identity of a lock, which a wrapper keeps beside it.

use std::ffi::OsString;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::entry::LockEntry;
use crate::local::{self, Awaited, Held, Local};
use crate::mode::{Mode, Wanted};
use crate::report::{CallSite, Report};
use crate::{file, recorder, switch, totals};

/// The identity of one lock, from its creation to its end.
///
/// A wrapper keeps it in the lock, and tells it of each acquisition and release. It costs one
/// relaxed load a call while the recorder is off. While it is on, it must not be told of a lock
/// that a global allocator takes inside of another recorded lock, or at first by an attempt.
///
/// If the wrapper is `repr(C)` and has the raw lock directly behind its identity, then a
/// [`Wait`](crate::Wait) for the raw lock's address is known to be for this lock.
///
/// ```
/// use stanchion_order::{Identity, Mode};
///
/// static IDENTITY: Identity = Identity::new();
///
/// IDENTITY.acquiring(Mode::Exclusive);
/// // Here the lock blocks.
/// IDENTITY.acquired(Mode::Exclusive);
/// // Here the lock is held.
/// IDENTITY.released(Mode::Exclusive);
/// ```
pub struct Identity {
    /// The lock's entry, or null before the first recorded acquisition.
    entry: AtomicPtr<LockEntry>,
    /// The place of creation, if it is known.
    created: Option<CallSite>,
}

impl Identity {
    /// Makes the identity of a lock that is created where the caller is called. Costs nothing, and
    /// never panics.
    ///
    /// ```
    /// use stanchion_order::Identity;
    ///
    /// let identity = Identity::new();
    /// # drop(identity);
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn new() -> Self {
        let created = Some(Location::caller());
        Self { entry: AtomicPtr::new(std::ptr::null_mut()), created }
    }

    /// Makes the identity of a lock without a known creation, such as a constant. Reports name the
    /// place of its first use. Costs nothing, and never panics.
    ///
    /// ```
    /// use stanchion_order::Identity;
    ///
    /// const IDENTITY: Identity = Identity::unplaced();
    /// # drop(IDENTITY);
    /// ```
    #[must_use]
    pub const fn unplaced() -> Self {
        Self { entry: AtomicPtr::new(std::ptr::null_mut()), created: None }
    }

    /// Tells that the thread is about to block for the lock. An attempt that does not block, or
    /// not forever, tells only [`acquired`](Self::acquired).
    ///
    /// Costs a relaxed load while the recorder is off. A pair that was seen costs some nanoseconds;
    /// a new one takes a call path. Never panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// identity.acquiring(Mode::Shared);
    /// ```
    #[inline]
    #[track_caller]
    pub fn acquiring(&self, mode: Mode) {
        if !switch::is_off() {
            self.note_acquiring_alone(mode, Location::caller());
        }
    }

    /// Takes the lock: by `attempt` if that succeeds, and else by `block`. Returns its guard. Other
    /// processes see a thread that blocks, and since when. If the recorder is off, it is `block`
    /// alone.
    ///
    /// It tells [`acquiring`](Self::acquiring) and [`acquired`](Self::acquired), and costs as they
    /// do. A thread that blocks costs a reading of the clock more. Never panics itself.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use stanchion_order::{Identity, Mode};
    /// # let (identity, lock) = (Identity::new(), Mutex::new(5));
    /// let guard = identity.acquire(
    ///     Mode::Exclusive,
    ///     || lock.try_lock().ok(),
    ///     || lock.lock().unwrap(),
    /// );
    /// assert_eq!(*guard, 5);
    /// # identity.released(Mode::Exclusive);
    /// ```
    #[inline]
    #[track_caller]
    pub fn acquire<G>(
        &self,
        mode: Mode,
        attempt: impl FnOnce() -> Option<G>,
        block: impl FnOnce() -> G,
    ) -> G {
        // One look is enough: a thread that blocks while the recorder is switched on is taken for
        // one that held the lock before.
        if switch::is_off() {
            return block();
        }
        self.acquire_recorded(mode, attempt, block, Location::caller())
    }

    /// Takes the lock as [`acquire`](Self::acquire) does, if the recorder may be on.
    #[inline(never)]
    fn acquire_recorded<G>(
        &self,
        mode: Mode,
        attempt: impl FnOnce() -> Option<G>,
        block: impl FnOnce() -> G,
        place: CallSite,
    ) -> G {
        if !is_on() {
            return block();
        }
        self.note_acquiring(mode, place);
        let guard = attempt().unwrap_or_else(|| {
            self.note_blocking(mode, place, false);
            block()
        });
        self.note_acquired(mode, place);
        guard
    }

    /// Tells that the thread is about to block for the lock until a time: that is no order.
    /// [`acquired`](Self::acquired) or [`gave_up`](Self::gave_up) follows. Costs as these do.
    /// Never panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// identity.trying(Mode::Exclusive);
    /// // Here the lock blocks until a time.
    /// identity.gave_up();
    /// ```
    #[inline]
    #[track_caller]
    pub fn trying(&self, mode: Mode) {
        if !switch::is_off() {
            self.note_blocking(mode, Location::caller(), false);
        }
    }

    /// Tells that the thread has blocked for the lock and did not get it. Costs as
    /// [`released`](Self::released) does. Never panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// # identity.trying(Mode::Exclusive);
    /// identity.gave_up();
    /// ```
    #[inline]
    pub fn gave_up(&self) {
        if !switch::is_off() {
            note_gave_up();
        }
    }

    /// Tells that the thread holds the lock. Costs as [`acquiring`](Self::acquiring) does. Never
    /// panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// identity.acquired(Mode::Upgradable);
    /// ```
    #[inline]
    #[track_caller]
    pub fn acquired(&self, mode: Mode) {
        if !switch::is_off() {
            self.note_acquired(mode, Location::caller());
        }
    }

    /// Tells that the thread is about to release the lock. Costs a relaxed load while the recorder
    /// is off, and some nanoseconds else. Never panics.
    ///
    /// If the thread does not hold the lock, then the lock leaves the graph and is counted.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// # identity.acquired(Mode::Exclusive);
    /// identity.released(Mode::Exclusive);
    /// ```
    #[inline]
    pub fn released(&self, mode: Mode) {
        if !switch::is_off() {
            self.note_released(mode);
        }
    }

    /// Tells that the thread holds the lock in another mode than before, without a release in
    /// between. Costs as [`released`](Self::released) does. Never panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// # identity.acquired(Mode::Exclusive);
    /// identity.changed(Mode::Exclusive, Mode::Shared);
    /// # identity.released(Mode::Shared);
    /// ```
    #[inline]
    pub fn changed(&self, from: Mode, to: Mode) {
        if !switch::is_off() {
            self.note_changed(from, to);
        }
    }

    /// Tells that the thread, which holds the lock upgradable, is about to block until all readers
    /// have left. [`changed`](Self::changed) follows. Costs as [`acquiring`](Self::acquiring) does.
    /// Never panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// # identity.acquired(Mode::Upgradable);
    /// identity.upgrading();
    /// identity.changed(Mode::Upgradable, Mode::Exclusive);
    /// # identity.released(Mode::Exclusive);
    /// ```
    #[inline]
    #[track_caller]
    pub fn upgrading(&self) {
        if !switch::is_off() {
            self.note_upgrading(Location::caller());
        }
    }

    /// Runs `act`, which releases the lock, blocks, and takes the lock again, also if it panics.
    /// That is the wait of a condition variable. Costs as a release and an acquisition do. Never
    /// panics itself.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode};
    /// # let identity = Identity::new();
    /// # identity.acquired(Mode::Exclusive);
    /// let woken = identity.reacquiring(Mode::Exclusive, || "the wait is over");
    /// # assert!(woken.ends_with("over"));
    /// # identity.released(Mode::Exclusive);
    /// ```
    #[inline]
    #[track_caller]
    pub fn reacquiring<R>(&self, mode: Mode, act: impl FnOnce() -> R) -> R {
        /// Tells that the lock is held again.
        struct Again<'a>(&'a Identity, Mode, CallSite);

        impl Drop for Again<'_> {
            fn drop(&mut self) {
                if !switch::is_off() {
                    self.0.note_acquired(self.1, self.2);
                }
            }
        }

        if !switch::is_off() {
            self.note_reacquiring(mode, Location::caller());
        }
        let _again = Again(self, mode, Location::caller());
        act()
    }

    // These are calls of their own: while the recorder is off, an acquisition has none of their
    // code. Those of each acquisition are not `cold`, which would make them slow while it is on.
    // Each asks the switch again, which reads the variable if that was not done yet.

    /// Notes an acquisition.
    #[inline(never)]
    fn note_acquiring(&self, mode: Mode, place: CallSite) {
        if is_on() {
            local::enter(|local| {
                let news = recorder::acquiring(local, self.entry(place), Wanted::New(mode), place);
                news.iter().for_each(append);
            });
        }
    }

    /// Notes an acquisition of a lock that does not tell before it blocks.
    #[cold]
    #[inline(never)]
    fn note_acquiring_alone(&self, mode: Mode, place: CallSite) {
        if is_on() {
            self.note_acquiring(mode, place);
            local::enter(|local| self.await_lock(local, mode, place, false));
        }
    }

    /// Notes that the thread is about to block, for other processes too.
    #[cold]
    #[inline(never)]
    fn note_blocking(&self, mode: Mode, place: CallSite, is_condition: bool) {
        if is_on() {
            local::enter(|local| {
                self.await_lock(local, mode, place, is_condition);
                local.publish_awaited();
            });
        }
    }

    /// Notes the release of a lock, for which the thread then blocks again.
    #[cold]
    #[inline(never)]
    fn note_reacquiring(&self, mode: Mode, place: CallSite) {
        self.note_released(mode);
        self.note_acquiring(mode, place);
        self.note_blocking(mode, place, true);
    }

    /// Notes a release.
    #[inline(never)]
    fn note_released(&self, mode: Mode) {
        if is_on() {
            self.with_entry(|local, entry| recorder::released(local, entry, mode));
        }
    }

    /// Notes another mode of a lock that the thread holds.
    #[inline(never)]
    fn note_changed(&self, from: Mode, to: Mode) {
        if is_on() {
            self.with_entry(|local, entry| recorder::changed(local, entry, from, to));
        }
    }

    /// Notes that the thread is about to block for the readers of a lock that it holds.
    #[cold]
    #[inline(never)]
    fn note_upgrading(&self, place: CallSite) {
        if !is_on() {
            return;
        }
        self.with_entry(|local, entry| {
            let lock = self.held(entry, Mode::Exclusive, place);
            local.await_lock(Awaited { lock, is_condition: false });
            local.publish_awaited();
            let news = recorder::acquiring(local, entry, Wanted::Upgrade, place);
            news.iter().for_each(append);
        });
    }

    /// Notes that the thread is about to block for the lock.
    fn await_lock(&self, local: &Local, mode: Mode, place: CallSite, is_condition: bool) {
        let lock = self.held(self.entry(place), mode, place);
        local.await_lock(Awaited { lock, is_condition });
    }

    /// Notes that the lock is held.
    #[inline(never)]
    fn note_acquired(&self, mode: Mode, place: CallSite) {
        if is_on() {
            local::enter(|local| {
                recorder::acquired(local, self.held(self.entry(place), mode, place));
            });
        }
    }

    /// Returns the lock as the thread holds it. Its address is that behind this identity.
    #[inline]
    fn held(&self, entry: &'static LockEntry, mode: Mode, place: CallSite) -> Held {
        let address = std::ptr::from_ref(self).addr() + size_of::<Self>();
        Held { entry, number: entry.number(), address, mode, place }
    }

    /// Runs `act` with the entry of a lock that has one. A lock without an entry was taken while
    /// the recorder was off.
    #[inline]
    fn with_entry(&self, act: impl FnOnce(&Local, &'static LockEntry)) {
        if let Some(entry) = self.known_entry() {
            local::enter(|local| act(local, entry));
        }
    }

    /// Returns the entry, if the lock has one.
    #[inline]
    fn known_entry(&self) -> Option<&'static LockEntry> {
        // Acquire: pairs with the Release in `recorder::begin`, which wrote the entry's number.
        let entry = self.entry.load(Ordering::Acquire);
        // SAFETY: it is null or points to an entry that `recorder::begin` has leaked.
        unsafe { entry.as_ref() }
    }

    /// Returns the entry, and gets one if the lock has none.
    #[inline]
    fn entry(&self, place: CallSite) -> &'static LockEntry {
        loop {
            if let Some(entry) = self.known_entry() {
                return entry;
            }
            recorder::begin(&self.entry, self.created, place);
        }
    }
}

impl Default for Identity {
    /// Makes the identity of a lock without a known creation.
    fn default() -> Self {
        Self::unplaced()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.known_entry().map(LockEntry::number)).finish()
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // In the child of a fork the record may be locked forever: the entry is leaked. So is it if
        // the lock ends inside of the recorder, which holds the record.
        if switch::is_known_on() {
            self.with_entry(recorder::end);
        }
    }
}

/// Notes that the thread did not get the lock that it was blocked for.
#[cold]
#[inline(never)]
fn note_gave_up() {
    if is_on() {
        local::enter(|local| local.await_none());
    }
}

/// Returns true if acquisitions are recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    switch::is_on(begin)
}

/// Begins with the file that the variable names.
fn begin(named: OsString) {
    file::begin(named, at_exit);
    switch::switch_on(local::pause, local::resume);
}

/// Appends findings to the file of the variable, if there is one.
pub(crate) fn append(news: &Report) {
    file::append(news, None);
}

/// Appends the numbers and the losses when the process ends.
extern "C" fn at_exit() {
    // Not in the child of a fork, which has only what its parent had recorded.
    if !switch::is_known_on() {
        return;
    }
    local::enter(|_| {
        let Report { losses, locks, pairs, .. } = recorder::report();
        let mut last = Report { losses, locks, pairs, ..Report::default() };
        totals::write_into(&mut last);
        file::append(&last, Some(&recorder::pairs()));
    });
}

/// Switches the recorder on, for tests and for programs that look at [`report`] themselves. It is
/// never switched off again: a lock that was held meanwhile would be misunderstood.
///
/// Costs nothing, and never panics. Acquisitions before it are not recorded. In the child of a fork
/// it does nothing, if the parent was on.
///
/// ```
/// stanchion_order::switch_on();
/// assert!(stanchion_order::is_switched_on());
/// ```
pub fn switch_on() {
    // The variable is read first, so that its file gets the findings too.
    is_on();
    switch::switch_on(local::pause, local::resume);
}

/// Returns true if acquisitions are recorded. Costs a relaxed load, and never panics.
///
/// ```
/// if !stanchion_order::is_switched_on() {
///     // `STANCHION_ORDERS` is not set.
/// }
/// ```
#[must_use]
pub fn is_switched_on() -> bool {
    is_on()
}

/// Returns the findings so far: none while the recorder is off. Copies them, and never panics.
///
/// ```
/// let report = stanchion_order::report();
/// assert!(report.cycles.is_empty(), "{report}");
/// ```
#[must_use]
pub fn report() -> Report {
    // In the child of a fork the record may be locked forever.
    if !switch::is_known_on() {
        return Report::default();
    }
    let mut report = local::enter(|_| recorder::report()).unwrap_or_default();
    totals::write_into(&mut report);
    report.losses.file = file::failure();
    report
}
