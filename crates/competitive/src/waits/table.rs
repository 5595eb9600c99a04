//! The table that waits are counted in: names, each with counts, and slots for single locks.
//!
//! Why static: a lock counts while it is held, where allocating is out of the question, and the
//! counts must outlive the lock. Why slots beside names: many locks may have one name, and counts
//! that only one lock adds to are cheaper ([`counters`](super::counters)).
//!
//! | `Name::state` | |
//! | --- | --- |
//! | 0 | free |
//! | 1 | its text is being written |
//! | length of the text, and 2 | taken, for ever |
//!
//! | `Slot::name` | |
//! | --- | --- |
//! | 0 | free |
//! | a name's index, and 2 | of the one lock that has it; emptied before it is given back |
//!
//! # Invariants
//!
//! 1. A name's text is written by the thread that took `state` from 0 to 1 by its exchange, before
//!    it stores the length; never after that.
//! 2. Names are taken in order, from the first on: the first free one ends a search.
//! 3. Two threads that take a name at once may take one each for the same text. The reader of the
//!    counts adds them up.
//! 4. Only the lock that has a slot counts there. As it is dropped, the counts go to its name.
//! 5. `Name::slots` is at least the number of slots of the name: a lock is counted before it takes
//!    one, and until it has given it back.
//!
//! # Orderings
//!
//! `state`: Release of the length, Acquire of a thread that reads the text. `Slot::name`: Acquire
//! of the lock that takes it, Release of the lock that gives it back. So a slot's new lock counts
//! on from the zeros that the last one left.

use core::str;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock;

use super::buckets::{self, IN_A_MODEL};
use super::counters::{Counters, Writers};
use crate::cost;

/// The number of names that there can be: 512, and two in a model.
pub const NAMES: usize = if IN_A_MODEL { 2 } else { 512 };
/// The number of locks that can have a slot of their own at a time: 512, and one in a model. Others
/// share that of their name.
pub const SLOTS: usize = if IN_A_MODEL { 1 } else { 512 };
/// Longer names are cut to so many bytes, or a few less where that would split a character.
pub const MAX_NAME: usize = 120;
/// The name of locks that have none.
pub const UNNAMED: &str = "unnamed";
/// The name of all locks beyond the table.
pub const OTHERS: &str = "(others)";

/// One name may have so many slots at a time: a thousand locks of one name leave room for others.
const SLOTS_OF_ONE_NAME: u32 = 16;

struct Name {
    /// Free, being written, or the length of the text and 2. Written by the thread that takes the
    /// name.
    state: AtomicU32,
    /// The number of slots of its locks. Written by locks that take one or give one back.
    slots: AtomicU32,
    /// The text. Written by the thread that takes the name.
    text: UnsafeCell<[u8; MAX_NAME]>,
    /// The counts. Written by locks that share them.
    counters: CachePadded<Counters>,
}

// SAFETY: the text is written by one thread before it is published, and only read afterwards
// (Invariant 1).
unsafe impl Sync for Name {}

const WRITING: u32 = 1;
const TAKEN: u32 = 2;

struct Slot {
    /// Free, or the name's index and 2. Written by the lock that takes it or gives it back.
    name: AtomicU32,
    /// The counts. Written by the lock's holder.
    counters: CachePadded<Counters>,
}

stanchion_machine::global! {
    static TABLE: [Name; NAMES] = [const { Name::new() }; NAMES];
}

stanchion_machine::global! {
    static OWN: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
}

stanchion_machine::global! {
    /// The counts under no name, because the table was full.
    static BEYOND: Counters = Counters::new();
}

stanchion_machine::global! {
    /// The number of locks or records that came when the table was full.
    static OVERFLOW: AtomicU64 = AtomicU64::new(0);
}

stanchion_machine::global! {
    /// The width of a bucket in nanoseconds; 0 before the first name.
    static UNIT: AtomicU64 = AtomicU64::new(0);
}

stanchion_machine::global! {
    /// The time when the recording began.
    static BEGAN: AtomicU64 = AtomicU64::new(0);
}

impl Name {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            slots: AtomicU32::new(0),
            text: UnsafeCell::new([0; MAX_NAME]),
            counters: CachePadded::new(Counters::new()),
        }
    }

    /// The text, if it is there already.
    fn text(&'static self) -> Option<&'static str> {
        // Acquire: pairs with the Release of `name`.
        let length = self.state.load(Ordering::Acquire).checked_sub(TAKEN)? as usize;
        // SAFETY: it was published, and is never written again (Invariant 1).
        let bytes: &'static [u8; MAX_NAME] = self.text.with(|text| unsafe { &*text });
        str::from_utf8(bytes.get(..length)?).ok()
    }

    fn write(&self, text: &Text) {
        // SAFETY: this thread took the name and has not published it. No other thread reads or
        // writes it (Invariant 1).
        let bytes = self.text.with_mut(|bytes| unsafe { &mut *bytes });
        *bytes = text.bytes;
        // Release: pairs with the Acquire of `text`.
        self.state.store(TAKEN + text.length as u32, Ordering::Release);
    }
}

impl Slot {
    const fn new() -> Self {
        Self { name: AtomicU32::new(0), counters: CachePadded::new(Counters::new()) }
    }
}

/// The slot or name where a lock counts. It fits in one word of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target(u32);

/// The target of locks without a name.
const NAMELESS: u32 = 1;
const FIRST_NAME: u32 = 2;
const FIRST_SLOT: u32 = FIRST_NAME + NAMES as u32;

#[allow(clippy::modulo_one, reason = "a model has one slot")]
impl Target {
    /// As a word of which 0 means none.
    pub(super) const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the value that gave these bits in [`to_bits`](Self::to_bits), or `None` for 0.
    pub(super) const fn from_bits(bits: u32) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Returns whether any number of locks and threads count there.
    pub(super) const fn is_shared(self) -> bool {
        self.0 != 0 && self.0 < FIRST_SLOT
    }

    /// One that any number of locks and threads count in.
    pub(super) fn shared(name: &str) -> Self {
        named(name).map_or_else(beyond, |index| Self(FIRST_NAME + index as u32))
    }

    /// One of the lock's own if there is any left, which it must give back by
    /// [`leave`](Self::leave).
    pub(super) fn own(name: &str) -> Self {
        let Some(index) = named(name) else { return beyond() };
        let (shared, slots) = (Self(FIRST_NAME + index as u32), &TABLE[index].slots);
        // Relaxed, here and below: a number by itself, and the exchange decides whose a slot is.
        if slots.fetch_add(1, Ordering::Relaxed) < SLOTS_OF_ONE_NAME {
            for (slot, number) in OWN.iter().zip(FIRST_SLOT..) {
                // Relaxed: a look before the exchange. Acquire: pairs with the Release of `leave`.
                if slot.name.load(Ordering::Relaxed) == 0
                    && (slot.name)
                        .compare_exchange(0, shared.0, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok()
                {
                    return Self(number);
                }
            }
        }
        slots.fetch_sub(1, Ordering::Relaxed);
        shared
    }

    pub(super) fn counters(self) -> (&'static Counters, Writers) {
        match self.0 {
            ..FIRST_NAME => (&BEYOND, Writers::Many),
            name @ FIRST_NAME..FIRST_SLOT => {
                (&TABLE[(name - FIRST_NAME) as usize].counters, Writers::Many)
            }
            slot => (&OWN[(slot - FIRST_SLOT) as usize % SLOTS].counters, Writers::One),
        }
    }

    /// Gives a slot of one's own back. Its counts go to the name.
    pub(super) fn leave(self) {
        if self.0 < FIRST_SLOT {
            return;
        }
        let slot = &OWN[(self.0 - FIRST_SLOT) as usize % SLOTS];
        let name = slot.name.load(Ordering::Relaxed).saturating_sub(FIRST_NAME) as usize;
        let name = TABLE.get(name);
        if let Some(name) = name {
            name.counters.drain(&slot.counters);
        }
        // Release: pairs with the Acquire of `own`.
        slot.name.store(0, Ordering::Release);
        if let Some(name) = name {
            // After the slot is free (Invariant 5). Relaxed: a number by itself.
            name.slots.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cold]
fn beyond() -> Target {
    begin();
    OVERFLOW.fetch_add(1, Ordering::Relaxed);
    Target(NAMELESS)
}

/// Finds a name or takes a free one; none if the table is full.
fn named(text: &str) -> Option<usize> {
    if text == OTHERS {
        return None;
    }
    let text = Text::kept(if text.is_empty() { UNNAMED } else { text });
    for (index, name) in TABLE.iter().enumerate() {
        // Relaxed: a look before the exchange.
        if name.state.load(Ordering::Relaxed) == 0
            && (name.state)
                .compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            begin();
            name.write(&text);
            return Some(index);
        }
        if name.text().is_some_and(|name| text.is(name)) {
            return Some(index);
        }
    }
    None
}

/// As much of a name as is kept.
struct Text {
    /// The bytes of the text.
    bytes: [u8; MAX_NAME],
    /// The number of bytes.
    length: usize,
}

impl Text {
    fn kept(name: &str) -> Self {
        let mut text = Self { bytes: [0; MAX_NAME], length: 0 };
        for letter in name.chars() {
            // A reader of a recording prints a name.
            let letter = if letter.is_control() { '?' } else { letter };
            let end = text.length + letter.len_utf8();
            let Some(room) = text.bytes.get_mut(text.length..end) else { break };
            letter.encode_utf8(room);
            text.length = end;
        }
        text
    }

    fn is(&self, name: &str) -> bool {
        &self.bytes[..self.length] == name.as_bytes()
    }
}

/// Keeps a name that is made while the program runs, so that a lock can have it: for the rest of
/// the process, in the table of names. [`OTHERS`] if that is full. A control character becomes a
/// question mark.
///
/// ```
/// use stanchion_competitive::waits;
/// let name = waits::intern(&format!("peg {}", 3));
/// assert_eq!(name, "peg 3");
/// ```
#[must_use]
pub fn intern(name: &str) -> &'static str {
    let text = named(name).and_then(|index| TABLE[index].text());
    text.map_or(OTHERS, stanchion_machine::__private::kept)
}

/// The recording begins, if it has not.
fn begin() {
    // Relaxed, both: numbers by themselves.
    if UNIT.load(Ordering::Relaxed) == 0 {
        let unit = buckets::unit(cost::current());
        if UNIT.compare_exchange(0, unit, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            BEGAN.store(clock::now().to_bits(), Ordering::Relaxed);
        }
    }
}

/// The width of a bucket in nanoseconds, fixed as the recording began.
#[inline]
pub(super) fn unit() -> u64 {
    match UNIT.load(Ordering::Relaxed) {
        0 => buckets::unit(cost::current()),
        unit => unit,
    }
}

/// Nanoseconds since the recording began; 0 if it has not.
pub(super) fn elapsed() -> u64 {
    match BEGAN.load(Ordering::Relaxed) {
        0 => 0,
        began => clock::now().nanos_since(clock::Ticks::from_bits(began)),
    }
}

/// Returns the number of locks that were counted under no name.
pub(super) fn overflow() -> u64 {
    OVERFLOW.load(Ordering::Relaxed)
}

/// Visits all counters with their names.
pub(super) fn visit(mut each: impl FnMut(&'static str, &'static Counters)) {
    for name in TABLE.iter() {
        if let Some(text) = name.text() {
            each(text, &name.counters);
        }
    }
    for slot in OWN.iter() {
        // Relaxed: the names were there before; which lock has the slot meanwhile cannot be known
        // better.
        let name = slot.name.load(Ordering::Relaxed).checked_sub(FIRST_NAME);
        if let Some(text) = name.and_then(|name| TABLE.get(name as usize)?.text()) {
            each(text, &slot.counters);
        }
    }
    each(OTHERS, &BEYOND);
}

/// The recording begins anew, with buckets for that C.
pub(super) fn restart(cost: u64) {
    visit(|_, counters| {
        counters.take();
    });
    OVERFLOW.store(0, Ordering::Relaxed);
    UNIT.store(buckets::unit(cost), Ordering::Relaxed);
    BEGAN.store(clock::now().to_bits(), Ordering::Relaxed);
}
