//! Replaces names by numbers, for a report that is shown to others.

use std::collections::BTreeMap;

use super::{Orders, Step};

impl Orders {
    /// Replaces places, functions and threads by numbers. Equal ones stay equal.
    pub(crate) fn hide_names(&mut self) {
        let mut numbers = Numbers::default();
        let cycles = self.cycles.iter_mut().chain(&mut self.hints);
        let steps = cycles.flat_map(|cycle| &mut cycle.steps).chain(&mut self.recursions);
        let steps = steps.chain(self.pairs.iter_mut().map(|pair| &mut pair.step));
        for step in steps {
            let Step { thread, held, held_mode, held_at, taken, taken_mode, taken_at, calls } =
                step;
            numbers.hide("thread", thread);
            for place in [&mut held.place, held_at, &mut taken.place, taken_at] {
                numbers.hide("place", place);
            }
            for call in calls {
                numbers.hide("function", call);
            }
            // A file that was edited may have any text there.
            for mode in [held_mode, taken_mode] {
                if !MODES.contains(&mode.as_str()) {
                    "unknown".clone_into(mode);
                }
            }
        }
        self.processes.iter_mut().zip(1..).for_each(|(process, number)| *process = number);
    }
}

/// The modes in which locks are taken.
const MODES: [&str; 4] = ["exclusive", "shared", "shared, recursive", "upgradable"];

/// The numbers of names, by their kind.
#[derive(Default)]
struct Numbers(BTreeMap<&'static str, BTreeMap<String, usize>>);

impl Numbers {
    /// Replaces a name by its kind and number.
    fn hide(&mut self, kind: &'static str, name: &mut String) {
        let numbers = self.0.entry(kind).or_default();
        let next = numbers.len() + 1;
        let number = *numbers.entry(std::mem::take(name)).or_insert(next);
        *name = format!("{kind} {number}");
    }
}
