//! Slots that have emptied are united.
//!
//! The paper's slots were not. The room that a gang leaves behind stays empty until a gang comes
//! that fits, and the others wait a slot longer than they need. Here the emptiest slot is given up
//! if its gangs find room in the others. The largest gang goes first, each where it fits best. This
//! is repeated until the gangs of the emptiest slot do not fit.
//!
//! # Guarantee
//!
//! After [`Matrix::unite`] any two used slots have together more members than there are processors.
//! Suppose that two slots had not. Then neither would the emptiest slot s and the emptiest of the
//! others, t. The room of t is then at least as large as what the gangs of s still need, at first
//! and after each of them is placed. A gang that goes to t takes from both alike. A gang that goes
//! elsewhere takes only from what is needed. So the search does not fail, and s is given up.
//!
//! It follows that more than half of the processors are taken if two slots are used. It also
//! follows that there are fewer than twice as many slots as any arrangement needs.
//!
//! Gangs that have not begun move at no cost. Gangs that have begun keep their processors if these
//! are free in the new slot. Otherwise their threads change processors, and pay with their caches.

use core::cmp::Reverse;

use super::allocation::{GangKey, Matrix, Packing, Placement, find_slot};
use super::number_set::NumberSet;

/// A gang that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The gang.
    pub gang: GangKey,
    /// Its old slot and processors.
    pub from: Placement,
    /// Its new slot and processors.
    pub to: Placement,
}

impl<D> Matrix<D> {
    /// Gives up slots if their gangs fit into others, and returns the gangs that were moved. A gang
    /// that was moved twice is named twice.
    ///
    /// The number of used slots falls or stays, and no slot is used that was not. Costs a copy of
    /// the lists and a search for each gang of the emptiest slot, and as much again for each slot
    /// that is given up.
    pub fn unite(&mut self) -> Vec<Move> {
        let mut moves = Vec::new();
        while let Some(targets) = self.without_emptiest() {
            for (gang, slot) in targets {
                moves.extend(self.relocate(gang, slot));
            }
        }
        moves
    }

    /// Returns a slot for each gang of the emptiest slot, if they all fit elsewhere.
    fn without_emptiest(&self) -> Option<Vec<(GangKey, usize)>> {
        if self.used() < 2 {
            return None;
        }
        let mut lists: Vec<NumberSet> = self.slots_by_room.clone();
        let list = lists[..self.processors].iter_mut().rev().find(|slots| !slots.is_empty())?;
        let emptiest = list.last()?;
        list.remove(emptiest);
        let mut gangs: Vec<_> = self.slots[emptiest]
            .gangs
            .iter()
            .filter_map(|&gang| Some((gang, self.placement(gang)?.processors.len())))
            .collect();
        gangs.sort_by_key(|(_, size)| Reverse(*size));
        let mut targets = Vec::with_capacity(gangs.len());
        for (gang, size) in gangs {
            let (room, slot) = find_slot(&lists, size, Packing::BestFit)?;
            lists[room].remove(slot);
            lists[room - size].insert(slot);
            targets.push((gang, slot));
        }
        Some(targets)
    }

    /// Moves a gang to a slot that has room for it, and its entry of pending gangs with it.
    fn relocate(&mut self, gang: GangKey, slot: usize) -> Option<Move> {
        let from = self.placement(gang)?;
        let free = self.slots[slot].free;
        let keeps = from.processors.is_subset(free);
        let processors = if keeps { from.processors } else { free.lowest(from.processors.len()) };
        let to = Placement { slot, processors };
        let pending = self.slots[from.slot].pending.iter().position(|other| *other == gang);
        if let Some(at) = pending {
            self.slots[from.slot].pending.remove(at);
            self.slots[slot].pending.push(gang);
        }
        self.vacate(gang, from);
        self.occupy(gang, to);
        self.allocated_mut(gang)?.placement = to;
        Some(Move { gang, from, to })
    }
}
