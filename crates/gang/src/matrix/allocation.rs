//! The matrix and its tables, and where a new gang goes.
//!
//! Rows are time slots, taken in turn. Columns are processors. A gang has as many processors as it
//! has members, all in one slot, so its members run at the same time.
//!
//! ```text
//! processor  0   1   2   3   4       room    lists of slots by room
//! slot 0     A   A   A   A   ·       1       0: {1}   1: {0}   2: {}
//! slot 1     B   B   B   C   C       0       3: {2}   4: {}    5: {3, 4, …}
//! slot 2     D   D   ·   ·   ·       3       table of slots: free processors,
//! slot 3     ·   ·   ·   ·   ·       5       gangs, and of those the pending ones
//! ```
//!
//! These are the two structures of the paper. For each amount of room there is the list of the
//! slots that have just that much. In the table of slots, each slot has its free processors and the
//! descriptors of gangs that were allocated and have not begun. Why the lists are sets of bits and
//! not links between the entries, as in the paper: first fit wants the lowest slot of each list,
//! and links would have to be kept in order by walking.
//!
//! Unlike the paper's, slots that have emptied are united again (`migration.rs`), and processors
//! that a slot leaves empty are given to gangs of other slots (`plan.rs`).
//!
//! # Invariants
//!
//! 1. A slot's free processors are those that no gang of the slot has. No two gangs of a slot share
//!    a processor. A gang is in one slot.
//! 2. Slot s is in list r if and only if it has r free processors.
//! 3. The used slots are those with a gang; `last_used` is the largest of them.
//!
//! Source: Ousterhout, "Scheduling Techniques for Concurrent Systems", ICDCS 1982; Feitelson and
//! Rudolph 1992, section 3.2 and figure 3.

use super::number_set::NumberSet;

/// The processors of a gang: member 0 has the smallest, and so on.
pub type ProcessorSet = NumberSet;

/// The most processors of a matrix.
pub const MOST_PROCESSORS: usize = NumberSet::BOUND;

/// The most slots of a matrix.
pub const MOST_SLOTS: usize = NumberSet::BOUND;

/// The choice of a slot for a new gang, of the used slots that have room for it. If none has, the
/// gang goes to the lowest unused slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// The lowest slot.
    FirstFit,
    /// The slot that is left with the least room; of several the lowest.
    #[default]
    BestFit,
}

/// The slot and the processors of a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The slot.
    pub slot: usize,
    /// The processors.
    pub processors: ProcessorSet,
}

/// The key of a gang in its matrix. It is not used again when the gang has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GangKey {
    /// The number of its entry.
    entry: u32,
    /// The number of gangs that have had this entry before.
    generation: u32,
}

/// The reason why there is no room for a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// It has no members.
    #[error("a gang of 0 members: ask for at least 1")]
    Empty,
    /// It has more members than there are processors: they could never run at the same time.
    #[error(
        "a gang of {asked} members, but there are {processors} processors: ask for at most {processors}"
    )]
    TooLarge {
        /// The number of members asked for.
        asked: usize,
        /// The number of processors.
        processors: usize,
    },
    /// Every slot has too little room.
    #[error(
        "none of the {slots} slots has room for a gang of {asked}: wait until one ends, or allow more slots"
    )]
    NoSlot {
        /// The number of members asked for.
        asked: usize,
        /// The number of slots.
        slots: usize,
    },
}

impl AllocationError {
    /// Returns an error if a gang of `asked` members could never run on so many processors.
    pub(crate) fn check(asked: usize, processors: usize) -> Result<(), Self> {
        match asked {
            0 => Err(Self::Empty),
            _ if asked > processors => Err(Self::TooLarge { asked, processors }),
            _ => Ok(()),
        }
    }
}

/// The error that there is no matrix of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a matrix of {processors} processors and {slots} slots: it can have 1 to {MOST_PROCESSORS} processors and 1 to {MOST_SLOTS} slots"
)]
pub struct WrongShape {
    /// The processors asked for.
    processors: usize,
    /// The slots asked for.
    slots: usize,
}

/// Ousterhout's matrix. Each gang has a descriptor `D`, which the matrix keeps and never reads.
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
/// // With A gone, 6 members are left for 5 processors; with B gone, 3.
/// assert_eq!(matrix.complete(a), Some("A"));
/// assert!(matrix.unite().is_empty());
/// assert_eq!(matrix.complete(b), Some("B"));
/// assert_eq!((matrix.unite().len(), matrix.used()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Matrix<D> {
    /// The number of columns.
    pub(super) processors: usize,
    /// The choice of a slot for a new gang.
    packing: Packing,
    /// The rows.
    pub(super) slots: Vec<Row>,
    /// By room, the slots that have it (Invariant 2).
    pub(super) slots_by_room: Vec<NumberSet>,
    /// The slots that have a gang (Invariant 3).
    pub(super) used: NumberSet,
    /// The gangs, by the numbers of their entries.
    gangs: Vec<Entry<D>>,
    /// Entries without a gang.
    vacant_entries: Vec<u32>,
}

/// A row of the matrix.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The processors that no gang of the slot has.
    pub(super) free: ProcessorSet,
    /// The gangs of the slot.
    pub(super) gangs: Vec<GangKey>,
    /// The gangs of the slot that have not begun.
    pub(super) pending: Vec<GangKey>,
}

/// An entry of the table of gangs.
#[derive(Debug)]
struct Entry<D> {
    /// The number of gangs that have had it before.
    generation: u32,
    /// The gang that has it.
    allocated: Option<Allocated<D>>,
}

/// A gang that has its processors.
#[derive(Debug)]
pub(super) struct Allocated<D> {
    /// Where it is.
    pub(super) placement: Placement,
    /// The value that the caller keeps with it.
    descriptor: D,
}

impl<D> Matrix<D> {
    /// Creates an empty matrix of so many columns and at most so many rows.
    ///
    /// # Errors
    ///
    /// [`WrongShape`] if one of the two is 0, or more than [`MOST_PROCESSORS`] or [`MOST_SLOTS`].
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

    /// Finds processors for a gang of `size` members and gives it these. The gang is pending until
    /// [`commence`](Self::commence).
    ///
    /// Costs a look at the lists of at least `size` room; for best fit, at those until one has a
    /// slot. It does not go through the slots.
    ///
    /// # Errors
    ///
    /// [`AllocationError`] and what would mend it. The matrix is as before.
    pub fn allocate(
        &mut self,
        size: usize,
        descriptor: D,
    ) -> Result<(GangKey, Placement), AllocationError> {
        AllocationError::check(size, self.processors)?;
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

    /// Removes a gang that has ended, or that never began, and returns its descriptor; `None` if it
    /// is not there (any more).
    ///
    /// Costs a look at the gangs of its slot.
    pub fn complete(&mut self, gang: GangKey) -> Option<D> {
        let entry = self.gangs.get_mut(gang.entry as usize)?;
        if entry.generation != gang.generation {
            return None;
        }
        let Allocated { placement, descriptor } = entry.allocated.take()?;
        // A key is used once: an entry without a generation left stays empty.
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.vacant_entries.push(gang.entry);
        }
        self.slots[placement.slot].pending.retain(|pending| *pending != gang);
        self.vacate(gang, placement);
        Some(descriptor)
    }

    /// Calls `begin` for each pending gang of a slot, in the order of allocation: the slot's turn
    /// has come. Then none of them is pending.
    pub fn commence(&mut self, slot: usize, mut begin: impl FnMut(GangKey, Placement, &mut D)) {
        while !self.slots[slot].pending.is_empty() {
            let gang = self.slots[slot].pending.remove(0);
            if let Some(allocated) = self.allocated_mut(gang) {
                begin(gang, allocated.placement, &mut allocated.descriptor);
            }
        }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Returns the most rows that there can be.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of used slots.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.len()
    }

    /// Returns the last used slot. After it comes the first one again.
    #[must_use]
    pub fn last_used(&self) -> Option<usize> {
        self.used.last()
    }

    /// Returns the used slot that has its turn after `slot`, round robin: `slot` itself if
    /// it is the only one.
    #[must_use]
    pub fn next_used(&self, slot: usize) -> Option<usize> {
        self.used.first_from(slot + 1).or_else(|| self.used.first())
    }

    /// Returns the number of gangs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.gangs.iter().filter(|entry| entry.allocated.is_some()).count()
    }

    /// Returns whether there is no gang.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Returns the gangs of a slot.
    #[must_use]
    pub fn gangs(&self, slot: usize) -> &[GangKey] {
        &self.slots[slot].gangs
    }

    /// Returns the gangs of a slot that have not begun, in the order of allocation.
    #[must_use]
    pub fn pending(&self, slot: usize) -> &[GangKey] {
        &self.slots[slot].pending
    }

    /// Returns the processors of a slot that none of its gangs has.
    #[must_use]
    pub fn free(&self, slot: usize) -> ProcessorSet {
        self.slots[slot].free
    }

    /// Returns where a gang is, if it is there.
    #[must_use]
    pub fn placement(&self, gang: GangKey) -> Option<Placement> {
        self.allocated(gang).map(|allocated| allocated.placement)
    }

    /// Returns the descriptor of a gang, if it is there.
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

    /// Gives `gang` the processors of `placement`, which are free.
    pub(super) fn occupy(&mut self, gang: GangKey, placement: Placement) {
        self.slots[placement.slot].gangs.push(gang);
        self.update_free(placement.slot, |free| free.without(placement.processors));
    }

    /// Frees the processors of `placement`, which are those of `gang`.
    pub(super) fn vacate(&mut self, gang: GangKey, placement: Placement) {
        self.slots[placement.slot].gangs.retain(|other| *other != gang);
        self.update_free(placement.slot, |free| free.with(placement.processors));
    }

    /// Changes the free processors of a slot. With them change its list (Invariant 2) and whether
    /// it is used (Invariant 3).
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

/// Returns the room and the number of the used slot with room for `size` that `packing` prefers.
pub(super) fn find_slot(
    slots_by_room: &[NumberSet],
    size: usize,
    packing: Packing,
) -> Option<(usize, usize)> {
    // An unused slot has all processors free, and no used one has.
    let used = slots_by_room.len() - 1;
    let mut fitting = (size..used).filter_map(|room| Some((room, slots_by_room[room].first()?)));
    match packing {
        Packing::FirstFit => fitting.min_by_key(|(_, slot)| *slot),
        Packing::BestFit => fitting.next(),
    }
}
