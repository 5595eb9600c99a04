//! Reading a ring that the kernel writes.

use crate::presence::Presence;
use crate::presence::switches::Switch;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// Where `data_head` lies in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
/// One record: type, misc and size of `struct perf_event_header`, then the time.
const RECORD: u64 = 16;
/// Where in a record the time is.
const TIME: usize = 8;
const SWITCH: u32 = 14;
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// A mapped ring: a page of state, then a page of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The address of the first page.
    base: NonNull<u8>,
    /// The size of a page.
    page: usize,
}

impl View {
    /// # Safety
    ///
    /// At `base` there must be two readable pages of `page` bytes for as long as the view is used.
    /// Only the kernel writes them.
    #[inline]
    pub(crate) unsafe fn new(base: NonNull<u8>, page: usize) -> Self {
        Self { base, page }
    }

    /// A word of the two pages.
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset < 2 * self.page);
        // SAFETY: inside the two pages, by the promise made to `new` and the callers' bounds.
        let word = unsafe { self.base.add(offset) };
        // SAFETY: readable and aligned (pages are, and the offset is a multiple of 8). It is only
        // loaded, which is allowed of an atomic in read-only memory; the kernel's writes are single
        // stores.
        unsafe { word.cast().as_ref() }
    }

    /// Switches so far.
    #[inline]
    pub(crate) fn count(self) -> u64 {
        // Relaxed: parity needs no more; readers of records add the fence.
        self.word(DATA_HEAD).load(Ordering::Relaxed) / RECORD
    }

    /// Returns the number of records that the ring holds.
    #[inline]
    fn kept(self) -> u64 {
        self.page as u64 / RECORD
    }

    pub(crate) fn switch(self, number: u64) -> Option<Switch> {
        self.record(number, self.count())
    }

    /// When switch `number` was, in ns of the monotonic clock.
    pub(crate) fn time(self, number: u64) -> Option<u64> {
        self.read(number, self.count(), TIME)
    }

    /// When the last switch was.
    pub(crate) fn since(self) -> Option<u64> {
        let count = self.count();
        self.read(count.checked_sub(1)?, count, TIME)
    }

    #[inline]
    fn record(self, number: u64, count: u64) -> Option<Switch> {
        decode(self.read(number, count, 0)?)
    }

    /// A word of record `number` of a thread that had switched `count` times just now.
    #[inline]
    fn read(self, number: u64, count: u64, offset: usize) -> Option<u64> {
        if number >= count {
            return None;
        }
        // Pairs with the kernel's write barrier between a record and the count that covers it.
        fence(Ordering::Acquire);
        let at = self.page + ((number % self.kept()) * RECORD) as usize + offset;
        // Relaxed: the fences around it order it against the two loads of the count.
        let word = self.word(at).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        // The kernel may be writing record `count` now, over the one a whole ring before it.
        if self.count().wrapping_sub(number) >= self.kept() {
            return None;
        }
        Some(word)
    }

    #[inline]
    pub(crate) fn presence(self) -> Presence {
        let count = self.count();
        if count.is_multiple_of(2) { Presence::Running } else { self.absence(count) }
    }

    /// Why it was off its processor when it had switched `count` times.
    fn absence(self, count: u64) -> Presence {
        match self.record(count - 1, count) {
            Some(Switch::Preempted) => Presence::Preempted,
            Some(Switch::Blocked) => Presence::Blocked,
            // It has switched 250 times since: it is busy enough.
            Some(Switch::In) | None => Presence::Running,
        }
    }
}

/// A record's header in memory order; `None` for one that is not a switch.
fn decode(header: u64) -> Option<Switch> {
    let [k0, k1, k2, k3, m0, m1, s0, s1] = header.to_ne_bytes();
    let (kind, misc, size) = (
        u32::from_ne_bytes([k0, k1, k2, k3]),
        u16::from_ne_bytes([m0, m1]),
        u16::from_ne_bytes([s0, s1]),
    );
    if kind != SWITCH || u64::from(size) != RECORD {
        return None;
    }
    Some(match (misc & OUT != 0, misc & PREEMPTED != 0) {
        (false, _) => Switch::In,
        (true, true) => Switch::Preempted,
        (true, false) => Switch::Blocked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// Two pages as the kernel would have written them, with so many switches and these last
    /// records.
    #[repr(align(4096))]
    struct Pages([u64; 2 * PAGE / 8]);

    fn header(misc: u16) -> u64 {
        let [k0, k1, k2, k3] = SWITCH.to_ne_bytes();
        let [m0, m1] = misc.to_ne_bytes();
        let [s0, s1] = (RECORD as u16).to_ne_bytes();
        u64::from_ne_bytes([k0, k1, k2, k3, m0, m1, s0, s1])
    }

    fn pages(count: u64, last: &[u16]) -> std::boxed::Box<Pages> {
        let mut pages = std::boxed::Box::new(Pages([0; 2 * PAGE / 8]));
        pages.0[DATA_HEAD / 8] = count * RECORD;
        for (back, misc) in last.iter().rev().enumerate() {
            let number = count - 1 - back as u64;
            let place = PAGE / 8 + 2 * (number % 256) as usize;
            pages.0[place] = header(*misc);
            pages.0[place + 1] = 1_000 + number;
        }
        pages
    }

    fn view(pages: &Pages) -> View {
        // SAFETY: two pages, borrowed for as long as the tests use the view.
        unsafe { View::new(NonNull::from(pages).cast(), PAGE) }
    }

    #[test]
    fn parity_and_the_last_record_tell() {
        let (out, preempted) = (OUT, OUT | PREEMPTED);
        for (count, last, expected) in [
            (0, &[][..], Presence::Running),
            (1, &[preempted], Presence::Preempted),
            (1, &[out], Presence::Blocked),
            (2, &[out, 0], Presence::Running),
            (257, &[preempted, 0, out], Presence::Blocked),
            (u64::MAX / RECORD, &[preempted], Presence::Preempted),
        ] {
            assert_eq!(view(&pages(count, last)).presence(), expected, "{count} {last:?}");
        }
    }

    #[test]
    fn only_what_cannot_be_under_the_kernels_pen_is_read() {
        let all = std::vec![OUT; 256];
        let pages = pages(1000, &all);
        let view = view(&pages);
        assert_eq!(view.switch(1000), None, "has not happened");
        assert_eq!(view.switch(999), Some(Switch::Blocked));
        assert_eq!(view.switch(745), Some(Switch::Blocked), "255 back");
        assert_eq!(view.switch(744), None, "256 back: may be overwritten now");
        assert_eq!(view.switch(0), None);
        assert_eq!((view.time(999), view.time(745)), (Some(1_999), Some(1_745)));
        assert_eq!((view.time(1000), view.time(744)), (None, None));
        assert_eq!(view.since(), Some(1_999));
    }

    #[test]
    fn what_is_not_a_switch_is_no_switch() {
        assert_eq!(decode(0), None);
        assert_eq!(decode(header(0) ^ 1), None, "another kind");
        assert_eq!(decode(u64::MAX), None);
    }
}
