//! Which member runs on which processor while a slot is on: the slot's own gangs, and alternates on
//! the processors that it leaves empty.
//!
//! ```text
//! processor  0   1   2   3   4
//! slot 0     A   A   A   A   c       C has processor 4, which is free here: it runs here too
//! slot 1     B   B   B   d*  c       D has 3 and 4, 4 is taken: one member is a fragment
//! slot 2     b   b   b   d*  C
//! slot 3     b   b   b   D   D       capitals are at home
//! ```
//!
//! An alternate keeps its processors, so its threads keep their CPUs. Whole gangs come first, from
//! the slot with the next turn onwards: each slot's gangs come first in the slot before theirs.
//! Fragments are members that run without the rest of their gang, which then cannot count on them.
//! They help gangs that seldom wait. With gangs that wait often they waste the processor. So an
//! executor uses fragments only if it is told to.
//!
//! Source: Ousterhout 1982, section 3.1 (alternate selection); Feitelson and Rudolph, "Distributed
//! Hierarchical Control for Parallel Processing", IEEE Computer 23(5), 1990, for the loss by slots
//! that are not filled.

use super::allocation::{GangKey, Matrix, ProcessorSet};

/// The members that run on processors which a slot leaves empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alternates {
    /// None.
    None,
    /// Gangs of other slots, if all their processors are empty.
    #[default]
    Gangs,
    /// These, and on processors that are still empty single members of other gangs.
    Fragments,
}

/// The reason why a member runs in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssignmentKind {
    /// It is the gang's own slot.
    Home,
    /// The processors of its whole gang were empty.
    Alternate,
    /// This processor was empty, but not all of the gang's.
    Fragment,
}

/// The member that runs on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// Its gang.
    pub gang: GangKey,
    /// Its index in the gang.
    pub member: usize,
    /// Why it runs there.
    pub kind: AssignmentKind,
}

/// The use of the processors in all used slots, counted in processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// All processors: used slots times columns.
    pub processors: usize,
    /// Processors with a gang of the slot.
    pub home: usize,
    /// Processors with a whole gang of another slot.
    pub alternate: usize,
    /// Processors with a single member of another slot's gang.
    pub fragment: usize,
}

impl Utilization {
    /// Returns the share of processor time that is lost because no member runs there, from 0 to 1,
    /// when all slots are on for equally long. The paper gives 25 % under reasonable conditions
    /// (section 1).
    #[must_use]
    pub fn lost(self) -> f64 {
        let taken = self.home + self.alternate + self.fragment;
        if self.processors == 0 { 0.0 } else { 1.0 - taken as f64 / self.processors as f64 }
    }
}

impl<D> Matrix<D> {
    /// Writes into `row`, by processor, the member that runs there while `slot` is on.
    ///
    /// Costs a look at each gang of the matrix, twice with fragments.
    ///
    /// # Panics
    ///
    /// If `row` does not have an entry for each processor.
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

    /// Returns how full the used slots are, with such alternates.
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

    /// Returns the gangs of the other slots, from the slot with the next turn onwards.
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
