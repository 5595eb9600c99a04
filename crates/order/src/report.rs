//! Reports: values that a program or a test looks at, or shows.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::mode::Mode;
use crate::path::CallPath;

/// The most totals of waits that are shown.
const SHOWN_WAITS: usize = 32;

/// The place in the source at which a lock was made or taken.
pub type CallSite = &'static Location<'static>;

/// Shows a place without the folder of the registry before the crate's name.
pub(crate) struct Short(pub(crate) CallSite);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.file();
        let of_registry = file.split_once("/registry/src/");
        let file =
            of_registry.and_then(|(_, file)| file.split_once('/')).map_or(file, |(_, to)| to);
        write!(f, "{file}:{}:{}", self.0.line(), self.0.column())
    }
}

/// One lock, from its creation to its end. A later lock at the same address is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lock {
    /// The number of the lock: in order of first use, from 1.
    pub number: u64,
    /// The place of creation, or that of the first use if the creation is not known.
    pub place: CallSite,
    /// True if `place` is the place of creation.
    pub created: bool,
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.created { "created" } else { "first used" };
        write!(f, "lock {} ({verb} at {})", self.number, Short(self.place))
    }
}

/// One step of a cycle: a thread that held a lock and blocked, or could block, for another one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The thread: its name if it has one, and its number.
    pub thread: String,
    /// The lock that was held.
    pub held: Lock,
    /// The mode in which it was held.
    pub held_mode: Mode,
    /// The place at which it was taken.
    pub held_place: CallSite,
    /// The lock that was taken.
    pub taken: Lock,
    /// The mode in which it was taken.
    pub taken_mode: Mode,
    /// The place at which it was taken.
    pub taken_place: CallSite,
    /// The call path of the second acquisition, from the first time that this pair was seen.
    pub path: Arc<CallPath>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  thread {} held {}", self.thread, self.held)?;
        writeln!(f, "      in mode {}, taken at {}", self.held_mode, Short(self.held_place))?;
        writeln!(f, "    and took {}", self.taken)?;
        writeln!(f, "      in mode {}, at {}", self.taken_mode, Short(self.taken_place))?;
        if let Some(frame) = self.path.first_outside() {
            writeln!(f, "    in {frame}")?;
        }
        write!(f, "    called from:\n{}", self.path)
    }
}

/// Acquisitions of different threads that block each other if they come at the same time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cycle {
    /// The steps: each takes the lock that the next one holds, and the last that of the first.
    pub steps: Vec<Step>,
    /// True if there is a lock that two steps read: it blocks only while a writer waits for it.
    pub needs_writer: bool,
}

impl Cycle {
    /// Returns the numbers of the held locks, in the order of the steps. Allocates a list.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode, report, switch_on};
    /// # switch_on();
    /// # let (one, two) = (Identity::new(), Identity::new());
    /// # for pair in [[&one, &two], [&two, &one]] {
    /// #     std::thread::scope(|scope| {
    /// #         scope.spawn(|| {
    /// #             for lock in pair {
    /// #                 lock.acquiring(Mode::Exclusive);
    /// #                 lock.acquired(Mode::Exclusive);
    /// #             }
    /// #             pair.iter().for_each(|lock| lock.released(Mode::Exclusive));
    /// #         });
    /// #     });
    /// # }
    /// let report = report();
    /// assert_eq!(report.cycles[0].locks(), [2, 1]);
    /// ```
    #[must_use]
    pub fn locks(&self) -> Vec<u64> {
        self.steps.iter().map(|step| step.held.number).collect()
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.needs_writer {
            writeln!(
                f,
                "  (only while other threads wait to write each lock that two of these read)"
            )?;
        }
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

/// A thread that took a lock which it held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recursion {
    /// The thread: its name if it has one, and its number.
    pub thread: String,
    /// The lock.
    pub lock: Lock,
    /// The mode in which it was held.
    pub held_mode: Mode,
    /// The place at which it was taken first.
    pub held_place: CallSite,
    /// The mode in which it was taken again.
    pub taken_mode: Mode,
    /// The place at which it was taken again.
    pub taken_place: CallSite,
    /// The call path of the second acquisition.
    pub path: Arc<CallPath>,
}

impl Recursion {
    /// Returns true if the second acquisition blocks forever. Otherwise a reader reads again, which
    /// blocks forever only if a writer waits in between. Costs a comparison, and never panics.
    ///
    /// ```
    /// # use stanchion_order::{Identity, Mode, report, switch_on};
    /// # switch_on();
    /// # let lock = Identity::new();
    /// # lock.acquired(Mode::Shared);
    /// # lock.acquiring(Mode::Shared);
    /// assert!(!report().recursions[0].is_fatal());
    /// ```
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.held_mode.conflicts(self.taken_mode)
    }
}

impl fmt::Display for Recursion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  thread {} held {}", self.thread, self.lock)?;
        writeln!(f, "      in mode {}, taken at {}", self.held_mode, Short(self.held_place))?;
        writeln!(f, "    and took it again")?;
        writeln!(f, "      in mode {}, at {}", self.taken_mode, Short(self.taken_place))?;
        if let Some(frame) = self.path.first_outside() {
            writeln!(f, "    in {frame}")?;
        }
        write!(f, "    called from:\n{}", self.path)
    }
}

/// A class of waits, by what the thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WaitClass {
    /// A recorded lock.
    Lock,
    /// A condition. The thread had released a recorded mutex for it.
    Condition,
    /// Anything else, by its address: a `Once`, or a primitive of the program's own.
    Other,
}

/// All waits of one class for one lock, condition or address.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitTotal {
    /// Their class.
    pub class: WaitClass,
    /// The lock that was waited for, or the mutex of the condition.
    pub lock: Option<Lock>,
    /// The address that the first of them waited for.
    pub address: usize,
    /// Their number.
    pub count: u64,
    /// The sum of their lengths.
    pub total: Duration,
    /// The length of the longest.
    pub longest: Duration,
    /// The call path of the first.
    pub path: Arc<CallPath>,
}

impl fmt::Display for WaitTotal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match (self.class, &self.lock) {
            (WaitClass::Lock, Some(lock)) => write!(f, "  for {lock}")?,
            (WaitClass::Condition, Some(lock)) => {
                write!(f, "  for a condition ({address:#x}) with {lock}")?;
            }
            _ => write!(f, "  for {address:#x}")?,
        }
        let (count, total, longest) = (self.count, self.total, self.longest);
        writeln!(f, ": {count}, {total:.1?} together, the longest {longest:.1?}")?;
        match self.path.first_outside() {
            Some(frame) => writeln!(f, "    first in {frame}"),
            None => Ok(()),
        }
    }
}

/// Long waits of threads that held a lock meanwhile: other threads could not take it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeldAcross {
    /// The lock that was held.
    pub held: Lock,
    /// The mode in which it was held.
    pub held_mode: Mode,
    /// The place at which it was taken.
    pub held_place: CallSite,
    /// The long waits: their number, the sum of their lengths and the longest, with the call path
    /// of the first.
    pub waits: WaitTotal,
}

impl fmt::Display for HeldAcross {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Short(self.held_place);
        writeln!(f, "  {} in mode {}, taken at {place}, in waits", self.held, self.held_mode)?;
        self.waits.fmt(f)
    }
}

/// The counts of what was not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Locks that left the graph because a release was not seen: they were released past the
    /// wrapper, by another thread, or they ended while a thread held them.
    pub unseen_releases: u64,
    /// Acquisitions by threads that held too many locks already.
    pub too_deep: u64,
    /// Searches for cycles that ended early, because the graph is too dense.
    pub cut_searches: u64,
    /// Pairs that were seen under more sets of held locks than are kept.
    pub cut_contexts: u64,
    /// Findings that are in no list, because the lists are full.
    pub cut_findings: u64,
    /// Waits that are in no total, because there are too many totals.
    pub unnamed_waits: u64,
    /// The reason if the file could not be written.
    pub file: Option<String>,
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, of) in [
            (self.unseen_releases, "locks that left the graph, because a release was not seen"),
            (self.too_deep, "acquisitions by threads that held too many locks"),
            (self.cut_searches, "searches that ended early"),
            (self.cut_contexts, "pairs under more sets of held locks than are kept"),
            (self.cut_findings, "findings beyond those that are kept"),
            (self.unnamed_waits, "waits for more locks and addresses than are kept"),
        ] {
            if count > 0 {
                writeln!(f, "not recorded: {of}: {count}")?;
            }
        }
        match &self.file {
            Some(why) => writeln!(f, "not written: {why}"),
            None => Ok(()),
        }
    }
}

/// The findings so far.
///
/// ```
/// use stanchion_order::{Report, report};
///
/// let report: Report = report();
/// assert!(report.cycles.is_empty());
/// assert!(report.to_string().contains("locks recorded: 0"));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Cycles of locks: possible deadlocks.
    pub cycles: Vec<Cycle>,
    /// Cycles of places of creation: the locks were others, but were made in the same places. A
    /// hint, because locks of one place are often taken in an order of their own.
    pub hints: Vec<Cycle>,
    /// Threads that took a lock which they held.
    pub recursions: Vec<Recursion>,
    /// The waits in a patched `parking_lot_core`, those with the most time first.
    pub waits: Vec<WaitTotal>,
    /// Locks that a thread held in waits of 10 ms or longer, those with the most time first.
    pub held_across: Vec<HeldAcross>,
    /// The counts of what was not recorded.
    pub losses: Losses,
    /// The locks that were recorded.
    pub locks: u64,
    /// The pairs of a held and a taken lock, of the locks that have not ended.
    pub pairs: usize,
}

/// Shows all findings, and the losses at the end.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for cycle in &self.cycles {
            writeln!(f, "possible deadlock of {} threads\n{cycle}", cycle.steps.len())?;
        }
        for recursion in &self.recursions {
            let title = if recursion.is_fatal() {
                "a thread blocks itself, unless the first release was not seen"
            } else {
                "recursive read: it blocks forever if a writer waits in between"
            };
            writeln!(f, "{title}\n{recursion}")?;
        }
        for hint in &self.hints {
            writeln!(f, "hint: locks made at these places are taken in both orders\n{hint}")?;
        }
        if !self.waits.is_empty() {
            writeln!(f, "waits")?;
            self.waits.iter().take(SHOWN_WAITS).try_for_each(|total| total.fmt(f))?;
        }
        match self.waits.len().saturating_sub(SHOWN_WAITS) {
            0 => {}
            more => writeln!(f, "  for {more} more locks and addresses, in less time each")?,
        }
        if !self.held_across.is_empty() {
            writeln!(f, "locks held across long waits")?;
            self.held_across.iter().take(SHOWN_WAITS).try_for_each(|held| held.fmt(f))?;
        }
        let (locks, pairs) = (self.locks, self.pairs);
        writeln!(f, "locks recorded: {locks}; pairs of a held and a taken lock: {pairs}")?;
        self.losses.fmt(f)
    }
}
