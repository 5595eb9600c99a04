//! Locks with names and numbers, and what each thread waited for each of them.
//!
//! The paper's strategies work lock by lock, and so does its analysis: *the waiting-time
//! distributions used in this analysis were accumulated separately for each lock* (section 4). So a
//! program here makes its locks through a [`Locksmith`], which asks the caller for each by name,
//! and each thread keeps a [`Ledger`] with an entry for each.

use crate::waits::Waits;
use lock_api::{Mutex, MutexGuard, RawMutex};

/// Makes the locks of a program and numbers them from 0.
pub(crate) struct Locksmith<'a, L> {
    /// Makes a lock by its name.
    make: &'a dyn Fn(&str) -> L,
    /// The names of the locks so far, by number.
    names: Vec<String>,
}

impl<'a, L: RawMutex> Locksmith<'a, L> {
    pub(crate) fn new(make: &'a dyn Fn(&str) -> L) -> Self {
        Self { make, names: Vec::new() }
    }

    /// A lock called `name` before `value`.
    pub(crate) fn lock<T>(&mut self, name: String, value: T) -> Named<L, T> {
        let number = self.names.len();
        let mutex = Mutex::from_raw(self.raw(name), value);
        Named { mutex, number }
    }

    /// The bare lock; its number is how many were made before.
    pub(crate) fn raw(&mut self, name: String) -> L {
        let lock = (self.make)(&name);
        self.names.push(name);
        lock
    }

    /// The names of the locks made, by number.
    pub(crate) fn names(self) -> Vec<String> {
        self.names
    }
}

/// A lock with a number, on a line of its own: neighbours in an array of locks must not slow each
/// other down.
#[repr(align(128))]
pub(crate) struct Named<L, T> {
    /// The data, under the lock.
    mutex: Mutex<L, T>,
    /// The number of the lock.
    number: usize,
}

/// The waits of one thread, or of all together, for each lock.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Vec<Waits>);

impl Ledger {
    /// For `locks` locks.
    pub(crate) fn new(locks: usize) -> Self {
        Self(vec![Waits::default(); locks])
    }

    /// Locks `lock` and records the wait, if there was one.
    #[inline]
    pub(crate) fn lock<'a, L: RawMutex, T>(
        &mut self,
        lock: &'a Named<L, T>,
    ) -> MutexGuard<'a, L, T> {
        self.0[lock.number].lock(&lock.mutex)
    }

    /// The entry of the lock with that number.
    pub(crate) fn entry(&mut self, number: usize) -> &mut Waits {
        &mut self.0[number]
    }

    /// Adds what another thread has recorded.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }

    /// The entries under the names of their locks.
    pub(crate) fn named(self, names: &[String]) -> Vec<LockWaits> {
        let entries = names.iter().cloned().zip(self.0);
        entries.map(|(name, waits)| LockWaits { name, waits }).collect()
    }
}

/// The waits for one lock, all threads together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWaits {
    /// The name of the lock, such as `peg 3`.
    pub name: String,
    /// The number and the length of the waits for it.
    pub waits: Waits,
}

impl LockWaits {
    /// The name without its number: `peg`.
    #[must_use]
    pub fn group(&self) -> &str {
        self.name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end()
    }
}

/// The waits by [group](LockWaits::group), in the order in which the groups first come: name,
/// number of locks, and their waits together.
///
/// ```
/// use stanchion_applications::{LockWaits, Waits, groups};
/// let mut waits = Waits::default();
/// waits.waited(700);
/// let lock = |name: &str| LockWaits { name: name.to_owned(), waits: waits.clone() };
/// let locks = [lock("peg 1"), lock("peg 2"), lock("count")];
/// let [pegs, count] = &groups(&locks)[..] else { panic!("two groups") };
/// assert_eq!((pegs.0, pegs.1, pegs.2.contended()), ("peg", 2, 2));
/// assert_eq!((count.0, count.1, count.2.contended()), ("count", 1, 1));
/// ```
#[must_use]
pub fn groups(locks: &[LockWaits]) -> Vec<(&str, usize, Waits)> {
    let mut groups: Vec<(&str, usize, Waits)> = Vec::new();
    for lock in locks {
        match groups.iter_mut().find(|group| group.0 == lock.group()) {
            Some((_, locks, waits)) => {
                *locks += 1;
                waits.merge(&lock.waits);
            }
            None => groups.push((lock.group(), 1, lock.waits.clone())),
        }
    }
    groups
}
