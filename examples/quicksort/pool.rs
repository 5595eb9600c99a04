//! The structures that hold the intervals: one line each.

use crate::{Memory, Program, locks};
use clap::builder::PossibleValue;
use lock_api::RawMutex;
use stanchion_applications::Around;
use stanchion_applications::quicksort::{
    InQueue, InStack, Interval, Options, Pool, Refused, Run, run_with,
};
use stanchion_lockfree::Progress;
use stanchion_lockfree::memory::{Counted, Hazard};
use stanchion_lockfree::queue::{
    LockedQueue, MichaelScottQueue, NikolaevQueue, PrakashLeeJohnsonQueue, TwoLockQueue,
};
use stanchion_lockfree::stack::{EliminationStack, HerlihyStack, LockedStack, TreiberStack};

/// The choices that a structure needs besides its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The lock.
    Lock,
    /// The scheme that frees memory.
    Memory,
    /// No other.
    Nothing,
}

/// A structure by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in the option.
    pub name: &'static str,
    /// The line in `--help`.
    about: &'static str,
    /// The further choices.
    pub needs: Needs,
}

/// The values of `--queue`.
pub const QUEUES: &[Entry] = &[
    Entry {
        name: "michael-scott",
        about: "a linked list with compare-exchange at both ends; non-blocking",
        needs: Needs::Memory,
    },
    Entry {
        name: "prakash-lee-johnson",
        about: "the same with snapshots, which help what is unfinished; non-blocking",
        needs: Needs::Memory,
    },
    Entry {
        name: "ring",
        about: "Nikolaev's bounded ring of 1024, without reclamation; non-blocking",
        needs: Needs::Nothing,
    },
    Entry { name: "two-lock", about: "a linked list with a lock at each end", needs: Needs::Lock },
    Entry { name: "locked", about: "a ring buffer under one lock", needs: Needs::Lock },
];

/// The values of `--stack`.
pub const STACKS: &[Entry] = &[
    Entry {
        name: "treiber",
        about: "a linked list with compare-exchange at the top; non-blocking",
        needs: Needs::Memory,
    },
    Entry {
        name: "herlihy",
        about: "by Herlihy's methodology, without unnecessary copying; non-blocking",
        needs: Needs::Memory,
    },
    Entry {
        name: "elimination",
        about: "Treiber's, in which a push and a pop may meet elsewhere; non-blocking",
        needs: Needs::Memory,
    },
    Entry { name: "locked", about: "a vector under a lock", needs: Needs::Lock },
];

/// Room in the bounded ring.
const ROOM: usize = 1024;

/// For clap.
pub fn values(entries: &[Entry]) -> Vec<PossibleValue> {
    entries.iter().map(|entry| PossibleValue::new(entry.name).help(entry.about)).collect()
}

/// The family, and the name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// A queue of that name.
    Queue(String),
    /// A stack of that name.
    Stack(String),
}

impl Structure {
    /// Returns the other choices that it needs.
    pub fn needs(&self) -> Needs {
        let (entries, name) = match self {
            Self::Queue(name) => (QUEUES, name),
            Self::Stack(name) => (STACKS, name),
        };
        let entry = entries.iter().find(|entry| entry.name == name);
        entry.map_or(Needs::Nothing, |entry| entry.needs)
    }
}

/// The result of a run, and the promise of its structure.
pub type Outcome = Result<(Run, Progress), Refused>;

/// A run to be made over some structure.
pub struct Sorting<'a> {
    /// The options of the run.
    pub(crate) options: &'a Options,
    /// The numbers to sort.
    pub(crate) numbers: Vec<u32>,
    /// The wrapper of each thread's work.
    pub(crate) around: &'a Around,
    /// Called with the number of sorted numbers.
    pub(crate) watch: &'a mut dyn FnMut(usize),
}

impl Sorting<'_> {
    fn over<P: Pool>(self, pool: P) -> Outcome {
        let Self { options, numbers, around, watch } = self;
        run_with(options, numbers, pool, around, watch).map(|run| (run, P::PROGRESS))
    }

    /// Runs over `structure`, which has a memory or a lock as far as it needs one.
    pub fn run(self, structure: &Structure, memory: Memory, lock: &str) -> Outcome {
        match (structure, memory) {
            _ if structure.needs() == Needs::Lock => {
                locks::run(lock, WithLock { sorting: self, structure })
            }
            (Structure::Queue(name), memory) => match (name.as_str(), memory) {
                ("prakash-lee-johnson", Memory::Counted) => {
                    self.over(InQueue(PrakashLeeJohnsonQueue::with_memory(Counted)))
                }
                ("prakash-lee-johnson", Memory::Hazard) => {
                    self.over(InQueue(PrakashLeeJohnsonQueue::with_memory(Hazard)))
                }
                ("ring", _) => self.over(InQueue(NikolaevQueue::<Interval>::with_capacity(ROOM))),
                (_, Memory::Counted) => self.over(InQueue(MichaelScottQueue::with_memory(Counted))),
                (_, Memory::Hazard) => self.over(InQueue(MichaelScottQueue::with_memory(Hazard))),
            },
            (Structure::Stack(name), memory) => match (name.as_str(), memory) {
                ("herlihy", Memory::Counted) => {
                    self.over(InStack(HerlihyStack::with_memory(Counted)))
                }
                ("herlihy", Memory::Hazard) => {
                    self.over(InStack(HerlihyStack::with_memory(Hazard)))
                }
                ("elimination", Memory::Counted) => {
                    self.over(InStack(EliminationStack::with_memory(Counted)))
                }
                ("elimination", Memory::Hazard) => {
                    self.over(InStack(EliminationStack::with_memory(Hazard)))
                }
                (_, Memory::Counted) => self.over(InStack(TreiberStack::with_memory(Counted))),
                (_, Memory::Hazard) => self.over(InStack(TreiberStack::with_memory(Hazard))),
            },
        }
    }
}

/// A run over a structure with a lock.
struct WithLock<'a, 's> {
    /// The sort.
    sorting: Sorting<'a>,
    /// The structure that was chosen.
    structure: &'s Structure,
}

impl Program for WithLock<'_, '_> {
    type Outcome = Outcome;

    fn run<L: RawMutex + Send + Sync + 'static>(self, _make: &dyn Fn(&str) -> L) -> Outcome {
        match self.structure {
            Structure::Queue(name) if name == "two-lock" => {
                self.sorting.over(InQueue(TwoLockQueue::<Interval, L>::default()))
            }
            Structure::Queue(_) => {
                self.sorting.over(InQueue(LockedQueue::<Interval, L>::default()))
            }
            Structure::Stack(_) => {
                self.sorting.over(InStack(LockedStack::<Interval, L>::default()))
            }
        }
    }
}
