//! Ousterhout's matrix: which gang runs when, and where.
//!
//! Rows are slots of time, taken in turn; columns are seats, a processor each. A gang has as many seats as it has members, all in one slot, so its
//! members run at the same time. This is the sequential part: who calls it holds a lock.
//!
//! ```text
//! seat       0   1   2   3   4       room    lists of slots by room
//! slot 0     A   A   A   A   ·       1       0: {1}   1: {0}   2: {}   3: {2}   4: {}   5: {3, 4, …}
//! slot 1     B   B   B   C   C       0
//! slot 2     D   D   ·   ·   ·       3       table of slots: free seats, gangs, and of those the pending ones
//! slot 3     ·   ·   ·   ·   ·       5
//! ```
//!
//! There are the two structures of the paper: for each amount of room the list of the slots that have just that much, and the table of slots, where
//! each has its free seats and the descriptors of gangs that were allocated and have not begun. Why the lists are sets of bits and not links between
//! the entries, as in the paper: first fit wants the lowest slot of each list, and links would have to be kept in order by walking.
//!
//! Unlike the paper's, slots that have emptied are united again ([`Matrix::unite`], `matrix/migration.rs`), and what a slot leaves empty is given to
//! gangs of other slots (`matrix/plan.rs`).
//!
//! # Invariants
//!
//! 1. A slot's free seats are those that no gang of it has, and no two gangs of a slot share a seat. A gang is in one slot.
//! 2. Slot s is in list r if and only if it has r free seats.
//! 3. The used slots are those with a gang; `last_used` is the largest of them.
//!
//! Source: Ousterhout, "Scheduling Techniques for Concurrent Systems", ICDCS 1982; Feitelson and Rudolph 1992, section 3.2 and figure 3.

use super::number_set::NumberSet;

/// The seats of a gang: member 0 has the smallest, and so on.
pub type ProcessorSet = NumberSet;

/// The most seats a matrix can have.
pub const MOST_PROCESSORS: usize = NumberSet::BOUND;

/// The most slots a matrix can have.
pub const MOST_SLOTS: usize = NumberSet::BOUND;

/// Which slot a new gang goes to, of the used ones that have room for it. If none has, it is the lowest unused one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// The lowest.
    FirstFit,
    /// The one that it leaves with the least room; of several the lowest.
    #[default]
    BestFit,
}

/// Where a gang is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// In which slot.
    pub slot: usize,
    /// On which seats.
    pub processors: ProcessorSet,
}

/// The name of a gang in its matrix. The name of one that has gone is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GangKey {
    entry: u32,
    /// How many gangs have had this entry before.
    generation: u32,
}

/// There is no place for a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// It has no members.
    #[error("a gang of 0 members: ask for at least 1")]
    Empty,
    /// It has more members than there are seats: they could never run at the same time.
    #[error(
        "a gang of {asked} members, but there are {processors} processors: ask for at most {processors}"
    )]
    TooLarge {
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        processors: usize,
    },
    /// Every slot has too little room.
    #[error(
        "none of the {slots} slots has room for a gang of {asked}: wait until one ends, or allow more slots"
    )]
    NoSlot {
        /// How many were asked for.
        asked: usize,
        /// How many slots there are.
        slots: usize,
    },
}

/// There is no matrix of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a matrix of {processors} processors and {slots} slots: it can have 1 to {MOST_PROCESSORS} processors and 1 to {MOST_SLOTS} slots"
)]
pub struct WrongShape {
    processors: usize,
    slots: usize,
}

/// The matrix. Each gang has a descriptor `D`, which the matrix keeps and never looks at.
///
/// ```
/// use stanchion_gang::matrix::{Matrix, Packing};
///
/// let mut matrix = Matrix::new(5, 8, Packing::BestFit)?;
/// let (a, _) = matrix.allocate(4, "A")?;
/// let (b, place) = matrix.allocate(3, "B")?;
/// assert_eq!((place.slot, matrix.used()), (1, 2));
///
/// // There is room for 2 in slot 1 only, and for 1 in slot 0, where it fits best.
/// assert_eq!(matrix.allocate(2, "C")?.1.slot, 1);
/// assert_eq!(matrix.allocate(1, "D")?.1.slot, 0);
///
/// // With A gone, 6 members are left for 5 seats; with B gone, 3.
/// assert_eq!(matrix.complete(a), Some("A"));
/// assert!(matrix.unite().is_empty());
/// assert_eq!(matrix.complete(b), Some("B"));
/// assert_eq!((matrix.unite().len(), matrix.used()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Matrix<D> {
    pub(super) processors: usize,
    pub(super) packing: Packing,
    pub(super) slots: Vec<Row>,
    /// By room, the slots that have it.
    pub(super) slots_by_room: Vec<NumberSet>,
    pub(super) used: NumberSet,
    pub(super) gangs: Vec<Entry<D>>,
    /// Entries without a gang.
    pub(super) vacant_entries: Vec<u32>,
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) free: ProcessorSet,
    pub(super) gangs: Vec<GangKey>,
    /// Those of `gangs` that have not begun.
    pub(super) pending: Vec<GangKey>,
}

#[derive(Debug)]
pub(super) struct Entry<D> {
    pub(super) generation: u32,
    pub(super) allocated: Option<Allocated<D>>,
}

#[derive(Debug)]
pub(super) struct Allocated<D> {
    pub(super) placement: Placement,
    pub(super) descriptor: D,
}

impl<D> Matrix<D> {
    /// An empty matrix of so many columns and at most so many rows.
    ///
    /// # Errors
    ///
    /// [`WrongShape`] if that is none, or more than [`MOST_PROCESSORS`] or [`MOST_SLOTS`].
    pub fn new(processors: usize, slots: usize, packing: Packing) -> Result<Self, WrongShape> {
        if !(1..=MOST_PROCESSORS).contains(&processors) || !(1..=MOST_SLOTS).contains(&slots) {
            return Err(WrongShape { processors, slots });
        }
        let slot =
            Row { free: ProcessorSet::below(processors), gangs: Vec::new(), pending: Vec::new() };
        let mut slots_by_room = vec![NumberSet::EMPTY; processors + 1];
        slots_by_room[processors] = NumberSet::below(slots);
        Ok(Self {
            processors,
            packing,
            slots: vec![slot; slots],
            slots_by_room,
            used: NumberSet::EMPTY,
            gangs: Vec::new(),
            vacant_entries: Vec::new(),
        })
    }

    /// Finds seats for a gang of `size` members and puts it there. It is pending until [`commence`](Self::commence).
    ///
    /// Costs a look at the lists of at least `size` room; for best fit, at those until one has a slot. The slots are not gone through.
    ///
    /// # Errors
    ///
    /// [`AllocationError`] and what would mend it; the matrix is as before.
    pub fn allocate(
        &mut self,
        size: usize,
        descriptor: D,
    ) -> Result<(GangKey, Placement), AllocationError> {
        if size == 0 {
            return Err(AllocationError::Empty);
        }
        if size > self.processors {
            return Err(AllocationError::TooLarge { asked: size, processors: self.processors });
        }
        let slot = find_slot(&self.slots_by_room, size, self.packing)
            .map(|(_, slot)| slot)
            .or_else(|| self.slots_by_room[self.processors].first())
            .ok_or(AllocationError::NoSlot { asked: size, slots: self.slots.len() })?;
        let placement = Placement { slot, processors: self.slots[slot].free.lowest(size) };
        let gang = self.insert_gang(Allocated { placement, descriptor });
        self.occupy(gang, placement);
        self.slots[slot].pending.push(gang);
        Ok((gang, placement))
    }

    /// Takes a gang that has ended, or that never began, out, and gives its descriptor back; nothing if it is not there (any more).
    ///
    /// Costs a look at the gangs of its slot.
    pub fn complete(&mut self, gang: GangKey) -> Option<D> {
        let entry = self.gangs.get_mut(gang.entry as usize)?;
        if entry.generation != gang.generation {
            return None;
        }
        let Allocated { placement, descriptor } = entry.allocated.take()?;
        // A name is used once: an entry whose count has run out stays empty.
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.vacant_entries.push(gang.entry);
        }
        self.slots[placement.slot].pending.retain(|pending| *pending != gang);
        self.vacate(gang, placement);
        Some(descriptor)
    }

    /// Calls `begin` for each pending gang of a slot, in the order of allocation: its turn has come, and they are pending no more.
    pub fn commence(&mut self, slot: usize, mut begin: impl FnMut(GangKey, Placement, &mut D)) {
        while !self.slots[slot].pending.is_empty() {
            let gang = self.slots[slot].pending.remove(0);
            if let Some(allocated) = self.allocated_mut(gang) {
                begin(gang, allocated.placement, &mut allocated.descriptor);
            }
        }
    }

    /// How many columns there are.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// How many rows there can be.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// How many slots are used.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.len()
    }

    /// The last slot that is used: after it comes the first one again.
    #[must_use]
    pub fn last_used(&self) -> Option<usize> {
        self.used.last()
    }

    /// The used slot whose turn comes after that of `slot`, round robin; itself if it is the only one.
    #[must_use]
    pub fn next_used(&self, slot: usize) -> Option<usize> {
        self.used.first_from(slot + 1).or_else(|| self.used.first())
    }

    /// How many gangs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.gangs.iter().filter(|entry| entry.allocated.is_some()).count()
    }

    /// Whether there is no gang.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// The gangs of a slot.
    #[must_use]
    pub fn gangs(&self, slot: usize) -> &[GangKey] {
        &self.slots[slot].gangs
    }

    /// The gangs of a slot that have not begun, in the order of allocation.
    #[must_use]
    pub fn pending(&self, slot: usize) -> &[GangKey] {
        &self.slots[slot].pending
    }

    /// The seats of a slot that no gang of it has.
    #[must_use]
    pub fn free(&self, slot: usize) -> ProcessorSet {
        self.slots[slot].free
    }

    /// Where a gang is, if it is there.
    #[must_use]
    pub fn placement(&self, gang: GangKey) -> Option<Placement> {
        self.allocated(gang).map(|allocated| allocated.placement)
    }

    /// The descriptor of a gang, if it is there.
    #[must_use]
    pub fn descriptor(&self, gang: GangKey) -> Option<&D> {
        self.allocated(gang).map(|allocated| &allocated.descriptor)
    }

    /// Returns the descriptor of a gang, if it is there, to change it.
    #[must_use]
    pub fn descriptor_mut(&mut self, gang: GangKey) -> Option<&mut D> {
        self.allocated_mut(gang).map(|allocated| &mut allocated.descriptor)
    }

    fn allocated(&self, gang: GangKey) -> Option<&Allocated<D>> {
        let entry = self.gangs.get(gang.entry as usize)?;
        entry.allocated.as_ref().filter(|_| entry.generation == gang.generation)
    }

    pub(super) fn allocated_mut(&mut self, gang: GangKey) -> Option<&mut Allocated<D>> {
        let entry = self.gangs.get_mut(gang.entry as usize)?;
        entry.allocated.as_mut().filter(|_| entry.generation == gang.generation)
    }

    /// Gives a new gang its entry.
    fn insert_gang(&mut self, allocated: Allocated<D>) -> GangKey {
        if let Some(entry) = self.vacant_entries.pop() {
            let at = &mut self.gangs[entry as usize];
            at.allocated = Some(allocated);
            return GangKey { entry, generation: at.generation };
        }
        let entry = u32::try_from(self.gangs.len()).expect("2^32 entries do not fit the memory");
        self.gangs.push(Entry { generation: 0, allocated: Some(allocated) });
        GangKey { entry, generation: 0 }
    }

    /// Gives `gang` the seats of `placement`, which are free.
    pub(super) fn occupy(&mut self, gang: GangKey, placement: Placement) {
        self.slots[placement.slot].gangs.push(gang);
        self.update_free(placement.slot, |free| free.without(placement.processors));
    }

    /// Frees the seats of `placement`, which are those of `gang`.
    pub(super) fn vacate(&mut self, gang: GangKey, placement: Placement) {
        self.slots[placement.slot].gangs.retain(|other| *other != gang);
        self.update_free(placement.slot, |free| free.with(placement.processors));
    }

    /// Changes the free seats of a slot, and with them its list (Invariant 2) and whether it is used (Invariant 3).
    fn update_free(&mut self, slot: usize, change: impl FnOnce(ProcessorSet) -> ProcessorSet) {
        let row = &mut self.slots[slot];
        self.slots_by_room[row.free.len()].remove(slot);
        row.free = change(row.free);
        self.slots_by_room[row.free.len()].insert(slot);
        if row.gangs.is_empty() {
            self.used.remove(slot);
        } else {
            self.used.insert(slot);
        }
    }
}

/// The used slot with room for `size` that `packing` prefers, and before it how much room it has.
pub(super) fn find_slot(
    slots_by_room: &[NumberSet],
    size: usize,
    packing: Packing,
) -> Option<(usize, usize)> {
    // An unused slot has all seats free, and no used one has.
    let used = slots_by_room.len() - 1;
    let mut fitting = (size..used).filter_map(|room| Some((room, slots_by_room[room].first()?)));
    match packing {
        Packing::FirstFit => fitting.min_by_key(|(_, slot)| *slot),
        Packing::BestFit => fitting.next(),
    }
}
