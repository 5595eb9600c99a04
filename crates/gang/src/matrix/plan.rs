//! Who sits where while a slot is on: its own gangs, and alternates on the seats that it leaves empty.
//!
//! ```text
//! seat       0   1   2   3   4
//! slot 0     A   A   A   A   c       C sits on seat 4, which is free here: it runs in this slot too
//! slot 1     B   B   B   d*  c       D has 3 and 4, and 4 is taken: one member runs without the other, a fragment
//! slot 2     b   b   b   d*  C
//! slot 3     b   b   b   D   D       capitals are at home
//! ```
//!
//! An alternate keeps its seats, so its threads keep their processors. Whole gangs first, from the slot whose turn is next onwards: each slot's gangs
//! come first in the slot before theirs. Fragments are members that run without the rest of their gang, which then cannot count on it: they help
//! gangs that seldom wait, and waste the seat with those that wait often. So nobody gets them unasked.
//!
//! Source: Ousterhout 1982, section 3.1 (alternate selection); Feitelson and Rudolph, "Distributed Hierarchical Control for Parallel Processing",
//! IEEE Computer 23(5), 1990, for what slots that are not filled lose.

use super::allocation::{GangKey, Matrix, ProcessorSet};

/// What runs on seats that a slot leaves empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alternates {
    /// Nothing.
    None,
    /// Gangs of other slots all of whose seats are empty.
    #[default]
    Gangs,
    /// These, and on what is empty then single members of others.
    Fragments,
}

/// Why a gang's member sits where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssignmentKind {
    /// It is its gang's slot.
    Home,
    /// The seats of its whole gang were empty.
    Alternate,
    /// This seat was empty; others of its gang's were not.
    Fragment,
}

/// Who sits on a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// Of which gang.
    pub gang: GangKey,
    /// Which member of it.
    pub member: usize,
    /// Why.
    pub kind: AssignmentKind,
}

/// How the seats of all used slots are filled, in seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// The seats there are: used slots by columns.
    pub processors: usize,
    /// Those of the slots' own gangs.
    pub home: usize,
    /// Those of whole gangs of other slots.
    pub alternate: usize,
    /// Those of single members of other slots' gangs.
    pub fragment: usize,
}

impl Utilization {
    /// The share of seat-time that is lost because nobody sits there, from 0 to 1, when all slots are on for equally long. The paper gives 25 %
    /// under reasonable conditions (section 1).
    #[must_use]
    pub fn lost(self) -> f64 {
        let taken = self.home + self.alternate + self.fragment;
        if self.processors == 0 { 0.0 } else { 1.0 - taken as f64 / self.processors as f64 }
    }
}

impl<D> Matrix<D> {
    /// Writes who sits where while `slot` is on into `row`, by seat.
    ///
    /// Costs a look at each gang of the matrix, twice with fragments.
    ///
    /// # Panics
    ///
    /// If `row` is not as long as there are seats.
    pub fn row(&self, slot: usize, alternates: Alternates, row: &mut [Option<Assignment>]) {
        assert_eq!(row.len(), self.processors, "a row has an entry for each processor");
        row.fill(None);
        self.assign_all(self.gangs(slot), AssignmentKind::Home, row);
        if alternates == Alternates::None {
            return;
        }
        let mut free = self.free(slot);
        for (gang, processors) in self.others(slot) {
            if processors.is_subset(free) {
                free = free.without(processors);
                self.assign_all(&[gang], AssignmentKind::Alternate, row);
            }
        }
        if alternates == Alternates::Fragments {
            for (gang, processors) in self.others(slot) {
                for (member, processor) in
                    processors.iter().enumerate().filter(|(_, processor)| free.contains(*processor))
                {
                    row[processor] =
                        Some(Assignment { gang, member, kind: AssignmentKind::Fragment });
                }
                free = free.without(processors);
            }
        }
    }

    /// How full the used slots are, with such alternates.
    #[must_use]
    pub fn utilization(&self, alternates: Alternates) -> Utilization {
        let mut row = vec![None; self.processors];
        let mut utilization = Utilization::default();
        for slot in self.used.iter() {
            self.row(slot, alternates, &mut row);
            utilization.processors += self.processors;
            for assignment in row.iter().flatten() {
                match assignment.kind {
                    AssignmentKind::Home => utilization.home += 1,
                    AssignmentKind::Alternate => utilization.alternate += 1,
                    AssignmentKind::Fragment => utilization.fragment += 1,
                }
            }
        }
        utilization
    }

    /// The gangs of the other slots, from that one onwards whose turn is next.
    fn others(&self, slot: usize) -> impl Iterator<Item = (GangKey, ProcessorSet)> {
        let later = self.used.iter().filter(move |other| *other > slot);
        let earlier = self.used.iter().filter(move |other| *other < slot);
        later
            .chain(earlier)
            .flat_map(|other| self.gangs(other))
            .filter_map(|&gang| Some((gang, self.placement(gang)?.processors)))
    }

    fn assign_all(&self, gangs: &[GangKey], kind: AssignmentKind, row: &mut [Option<Assignment>]) {
        for &gang in gangs {
            let processors =
                self.placement(gang).map_or(ProcessorSet::EMPTY, |placement| placement.processors);
            for (member, processor) in processors.iter().enumerate() {
                row[processor] = Some(Assignment { gang, member, kind });
            }
        }
    }
}
