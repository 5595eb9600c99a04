//! The queue of idle workers: a list through an array, so that a worker in the middle takes itself
//! out in a few steps.
//!
//! # Invariants
//!
//! 1. `links[p]` is there if and only if worker `p` is in the queue.

/// The idle workers, the newest first.
pub(super) struct Idle {
    newest: Option<usize>,
    length: usize,
    /// The link of each slot (Invariant 1).
    links: Box<[Option<Link>]>,
}

#[derive(Clone, Copy)]
struct Link {
    newer: Option<usize>,
    older: Option<usize>,
}

impl Idle {
    /// Creates an empty queue for so many slots.
    pub(super) fn new(slots: usize) -> Self {
        Self { newest: None, length: 0, links: vec![None; slots].into() }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Puts a worker in that is not in the queue.
    pub(super) fn add(&mut self, slot: usize) {
        let older = self.newest.replace(slot);
        if let Some(link) = older.and_then(|older| self.links[older].as_mut()) {
            link.newer = Some(slot);
        }
        self.links[slot] = Some(Link { newer: None, older });
        self.length += 1;
    }

    /// Takes the newest out.
    pub(super) fn take_newest(&mut self) -> Option<usize> {
        let newest = self.newest?;
        self.remove(newest);
        Some(newest)
    }

    /// Takes `slot` out. Returns false if it was not in the queue.
    pub(super) fn remove(&mut self, slot: usize) -> bool {
        let Some(Link { newer, older }) = self.links[slot].take() else { return false };
        match newer.and_then(|newer| self.links[newer].as_mut()) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
        if let Some(link) = older.and_then(|older| self.links[older].as_mut()) {
            link.newer = newer;
        }
        self.length -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_list_from_which_any_worker_may_go(steps in proptest::collection::vec((0_usize..3, 0_usize..5), 0..60)) {
            let mut idle = Idle::new(5);
            let mut model: Vec<usize> = Vec::new();
            for (what, slot) in steps {
                let there = model.contains(&slot);
                match what {
                    0 if !there => {
                        idle.add(slot);
                        model.push(slot);
                    }
                    1 => {
                        prop_assert_eq!(idle.remove(slot), there);
                        model.retain(|&other| other != slot);
                    }
                    2 => prop_assert_eq!(idle.take_newest(), model.pop()),
                    _ => {}
                }
                prop_assert_eq!(idle.len(), model.len());
            }
            while let Some(slot) = idle.take_newest() {
                prop_assert_eq!(Some(slot), model.pop());
            }
            prop_assert!(model.is_empty());
        }
    }
}
