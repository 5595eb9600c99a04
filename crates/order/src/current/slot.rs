//! A slot of the table: the locks of one thread. See the head of the module above.

use std::hint;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::{AwaitedState, LockState, ThreadState, WaitState};
use crate::mode::Mode;

/// The most locks of a thread that are shown.
const HELD: usize = 16;
/// The number of times that a reader looks at a slot that changes.
const LOOKS: usize = 1_000;

/// The bits of the mode in a label.
const MODE: u64 = 7;
/// The bit of a lock that a wait for a condition takes again.
const CONDITION: u64 = 1 << 3;
/// The bit of a lock with a known creation.
const CREATED: u64 = 1 << 4;
/// The lowest bit of the index of a place, plus 1.
const PLACE: u32 = 8;
/// The lowest bit of the index of the place of creation, plus 1.
const CREATION: u32 = 24;
/// The bit of an owner that has ended, beside its number.
const ENDED: u64 = 1 << 32;
/// The bits of an index.
const INDEX: u64 = 0xffff;

/// A lock, as a thread writes it.
#[derive(Clone, Copy)]
pub(crate) struct LockWords {
    /// The number of the lock, which is not 0.
    pub(crate) number: u64,
    /// The address of the lock.
    pub(crate) address: u64,
    /// The mode and the places, as [`label`] packs them.
    pub(crate) label: u64,
}

/// Packs parts of a label. Indices of places are those of [`super::index_of`].
#[inline]
pub(crate) fn label(mode: Mode, place: Option<usize>, is_condition: bool) -> u64 {
    let place = place.map_or(0, |index| index as u64 + 1);
    mode.number() | place << PLACE | if is_condition { CONDITION } else { 0 }
}

/// Packs the part of a label that is the same for all acquisitions of a lock.
pub(crate) fn creation_label(place: Option<usize>, is_created: bool) -> u64 {
    let place = place.map_or(0, |index| index as u64 + 1);
    place << CREATION | if is_created { CREATED } else { 0 }
}

/// The words of a lock.
#[repr(C)]
struct Words {
    /// The number of the lock. Written by the owner of the slot, as are the others.
    number: AtomicU64,
    /// The address of the lock.
    address: AtomicU64,
    /// Its label.
    label: AtomicU64,
}

impl Words {
    #[inline]
    fn store(&self, lock: LockWords) {
        self.number.store(lock.number, Ordering::Relaxed);
        self.address.store(lock.address, Ordering::Relaxed);
        self.label.store(lock.label, Ordering::Relaxed);
    }

    fn load(&self) -> LockWords {
        LockWords {
            number: self.number.load(Ordering::Relaxed),
            address: self.address.load(Ordering::Relaxed),
            label: self.label.load(Ordering::Relaxed),
        }
    }
}

/// The slot of one thread. See the head of the module above.
#[repr(C)]
pub(crate) struct Slot {
    /// The thread, or 0 if the slot is free. With [`ENDED`] if the thread has ended.
    owner: AtomicU64,
    /// Odd while the owner writes. Written by the owner, as are the others.
    version: AtomicU64,
    /// The number of locks that the owner holds.
    count: AtomicU64,
    /// The lock that the owner is about to block for. Its number is 0 if there is none.
    awaited: Words,
    /// The time since when.
    awaited_since: AtomicU64,
    /// The address that the owner waits for, or 0.
    waits_for: AtomicU64,
    /// The time since when.
    waits_since: AtomicU64,
    /// Room for later versions.
    spare: [AtomicU64; 7],
    /// The locks, the latest last.
    held: [Words; HELD],
}

impl Slot {
    /// Takes the slot for a thread, if it is free.
    pub(super) fn take(&self, thread: u32) -> bool {
        // Acquire: pairs with the Release of `free`. What the former owner wrote comes before.
        self.owner.compare_exchange(0, thread.into(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Frees the slot at the end of its thread. If the thread holds a lock, the slot stays: other
    /// threads may wait for that lock forever. It is marked, because the system gives the number of
    /// the thread again.
    pub(crate) fn free(&self) {
        self.write(|slot| {
            slot.awaited.number.store(0, Ordering::Relaxed);
            slot.waits_for.store(0, Ordering::Relaxed);
        });
        if self.count.load(Ordering::Relaxed) > 0 {
            // Relaxed: a reader takes nothing else for newer than this.
            self.owner.fetch_or(ENDED, Ordering::Relaxed);
            return;
        }
        // Release: pairs with the Acquire of `take`.
        self.owner.store(0, Ordering::Release);
    }

    /// Runs `act`, which writes the words.
    #[inline]
    fn write(&self, act: impl FnOnce(&Self)) {
        // Relaxed: only this thread writes it.
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Release: pairs with the Acquire fence of `read`.
        fence(Ordering::Release);
        act(self);
        // Release: pairs with the first Acquire of `read`.
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Notes that the thread holds `lock` as its lock number `index`, and awaits none any more.
    #[inline]
    pub(crate) fn push(&self, index: usize, lock: LockWords) {
        self.write(|slot| {
            if let Some(words) = slot.held.get(index) {
                words.store(lock);
            }
            slot.count.store(index as u64 + 1, Ordering::Relaxed);
            slot.awaited.number.store(0, Ordering::Relaxed);
        });
    }

    /// Notes that the thread holds the locks before `index` only. It is one word, so the state of
    /// each moment is whole without a new version.
    #[inline]
    pub(crate) fn pop(&self, index: usize) {
        self.count.store(index as u64, Ordering::Relaxed);
    }

    /// Notes that the thread holds the locks before `index`, and behind them those of `after`.
    #[inline]
    pub(crate) fn truncate(&self, index: usize, after: impl Iterator<Item = LockWords>) {
        self.write(|slot| {
            let mut count = index;
            for lock in after {
                if let Some(words) = slot.held.get(count) {
                    words.store(lock);
                }
                count += 1;
            }
            slot.count.store(count as u64, Ordering::Relaxed);
        });
    }

    /// Notes that the thread is about to block for a lock, or for none any more.
    #[inline]
    pub(crate) fn await_lock(&self, lock: Option<LockWords>, now_ns: u64) {
        self.write(|slot| match lock {
            Some(lock) => {
                slot.awaited.store(lock);
                slot.awaited_since.store(now_ns, Ordering::Relaxed);
            }
            None => slot.awaited.number.store(0, Ordering::Relaxed),
        });
    }

    /// Notes that the thread waits for an address, or for 0 no more.
    #[inline]
    pub(crate) fn wait_for(&self, address: usize, now_ns: u64) {
        self.write(|slot| {
            slot.waits_for.store(address as u64, Ordering::Relaxed);
            slot.waits_since.store(now_ns, Ordering::Relaxed);
        });
    }

    /// Returns the state of its thread, if it has one and stays while it is read. `place` returns
    /// the text of a place.
    pub(super) fn read(&self, place: impl Fn(usize) -> Option<String>) -> Option<ThreadState> {
        for _ in 0..LOOKS {
            // Relaxed: it is loaded again below, and its thread writes before it frees the slot.
            let owner = self.owner.load(Ordering::Relaxed);
            if owner == 0 {
                return None;
            }
            // Acquire: pairs with the last Release of `write`.
            let version = self.version.load(Ordering::Acquire);
            let count = self.count.load(Ordering::Relaxed) as usize;
            // A thread that locks after its first end has another slot, without the earlier locks.
            let held = self.held.iter().take(count).map(Words::load);
            let held: Vec<LockWords> = held.filter(|lock| lock.number != 0).collect();
            let (awaited, since) =
                (self.awaited.load(), self.awaited_since.load(Ordering::Relaxed));
            let address = self.waits_for.load(Ordering::Relaxed);
            let waits_since = self.waits_since.load(Ordering::Relaxed);
            // Acquire: pairs with the Release fence of `write`.
            fence(Ordering::Acquire);
            // Relaxed: after the fence.
            if version % 2 == 1
                || self.version.load(Ordering::Relaxed) != version
                || self.owner.load(Ordering::Relaxed) != owner
            {
                hint::spin_loop();
                continue;
            }
            return Some(ThreadState {
                thread: owner as u32,
                has_ended: owner & ENDED != 0,
                more: count.saturating_sub(HELD),
                held: held.iter().map(|&lock| state_of(lock, &place)).collect(),
                awaited: (awaited.number != 0).then(|| AwaitedState {
                    lock: state_of(awaited, &place),
                    is_condition: awaited.label & CONDITION != 0,
                    since_ns: since,
                }),
                wait: (address != 0).then_some(WaitState { address, since_ns: waits_since }),
            });
        }
        None
    }
}

/// Takes the words of a lock apart.
fn state_of(lock: LockWords, place: impl Fn(usize) -> Option<String>) -> LockState {
    let text = |lowest: u32| place(((lock.label >> lowest & INDEX) as usize).checked_sub(1)?);
    LockState {
        number: lock.number,
        address: lock.address,
        mode: Mode::of_number(lock.label & MODE),
        place: text(PLACE),
        created: text(CREATION),
        is_created: lock.label & CREATED != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Box<Slot> {
        // SAFETY: atomic integers, for which zeros are a value.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn words(number: u64) -> LockWords {
        LockWords { number, address: 16 * number, label: label(Mode::Shared, Some(6), false) }
    }

    fn text(index: usize) -> Option<String> {
        Some(format!("place {index}"))
    }

    #[test]
    fn a_thread_has_the_locks_that_it_has_written() {
        let slot = slot();
        assert!(slot.read(text).is_none());
        assert!(slot.take(7) && !slot.take(8));
        slot.await_lock(Some(words(1)), 1_000);
        slot.wait_for(16, 2_000);
        let state = slot.read(text).unwrap();
        let awaited = state.awaited.unwrap();
        assert_eq!(
            (awaited.lock.number, awaited.since_ns, awaited.is_condition),
            (1, 1_000, false)
        );
        assert_eq!(state.wait, Some(WaitState { address: 16, since_ns: 2_000 }));
        slot.wait_for(0, 0);
        (0..20).for_each(|index| slot.push(index, words(index as u64 + 1)));
        let state = slot.read(text).unwrap();
        assert_eq!((state.thread, state.held.len(), state.more), (7, HELD, 4));
        assert!(!state.has_ended);
        assert_eq!((state.awaited, state.wait), (None, None));
        let lock = &state.held[1];
        assert_eq!((lock.number, lock.address, lock.mode), (2, 32, Some(Mode::Shared)));
        assert_eq!((lock.place.as_deref(), &lock.created), (Some("place 6"), &None));
        slot.truncate(1, [words(3)].into_iter());
        let numbers: Vec<u64> = slot.read(text).unwrap().held.iter().map(|l| l.number).collect();
        assert_eq!(numbers, [1, 3]);
        slot.free();
        let state = slot.read(text).expect("its thread has ended with two locks");
        assert_eq!((state.thread, state.has_ended, state.held.len()), (7, true, 2));
        slot.pop(1);
        assert_eq!(slot.read(text).map(|state| state.held.len()), Some(1));
        slot.pop(0);
        slot.free();
        assert!(slot.read(text).is_none() && slot.take(9));
    }

    #[test]
    fn a_slot_that_is_written_for_good_or_has_wild_words_is_read_all_the_same() {
        let slot = slot();
        assert!(slot.take(7));
        slot.version.store(3, Ordering::Relaxed);
        assert!(slot.read(text).is_none());
        slot.version.store(4, Ordering::Relaxed);
        slot.count.store(u64::MAX, Ordering::Relaxed);
        slot.held[0].number.store(u64::MAX, Ordering::Relaxed);
        slot.held[0].label.store(u64::MAX, Ordering::Relaxed);
        let state = slot.read(text).unwrap();
        assert_eq!((state.held.len(), state.held[0].mode), (1, None));
    }

    #[test]
    fn a_reader_beside_the_writer_sees_one_moment() {
        use std::sync::atomic::AtomicBool;
        let (slot, done) = (slot(), AtomicBool::new(false));
        assert!(slot.take(7));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in (1..200_000).step_by(2) {
                    slot.truncate(0, [words(number), words(number + 1)].into_iter());
                }
                // Relaxed: the scope's end orders the rest.
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let Some(state) = slot.read(text) else { continue };
                let numbers: Vec<u64> = state.held.iter().map(|lock| lock.number).collect();
                match numbers[..] {
                    [] => {}
                    [first, second] => assert_eq!(first + 1, second),
                    _ => panic!("{numbers:?}"),
                }
                assert!(state.held.iter().all(|lock| lock.address == 16 * lock.number));
            }
        });
    }
}
