//! A gang while it runs: what its members share.
//!
//! # Invariants
//!
//! 1. `ended` is set once: who was first says why the gang ended.
//! 2. `ended` and `left` are set before the barrier is broken, so who finds it broken can say why.
//! 3. A member's thread drops its share of the closure and the results before it counts itself out: when `done` is set, only handles and scopes have one.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::park;

use crate::barrier::{Barrier, Broken, Central};
use crate::board::Board;
use crate::error::{Ended, GangError};
use crate::member::Member;
use crate::post::Post;

const CODE_BITS: u32 = 2;
const CANCELLED: u32 = 1;
const PANICKED: u32 = 2;
const LEFT: u32 = 3;

pub(crate) struct Team {
    pub(crate) id: u64,
    pub(crate) barrier: Central,
    pub(crate) board: Board,
    members: usize,
    /// 0, or why and by whom.
    ended: AtomicU32,
    /// 0, or one more than the first member that has returned.
    left: AtomicU32,
    /// Members that have not ended. Changed under the executor's lock.
    pub(crate) remaining: AtomicU32,
    done: AtomicU32,
    panicked: AtomicU32,
}

impl Team {
    pub(crate) fn new(id: u64, members: usize) -> Self {
        Self {
            id,
            barrier: Central::with_members(members).expect("as many as there are seats at most"),
            board: Board::new(members),
            members,
            ended: AtomicU32::fresh(0),
            left: AtomicU32::fresh(0),
            remaining: AtomicU32::fresh(members as u32),
            done: AtomicU32::fresh(0),
            panicked: AtomicU32::fresh(0),
        }
    }

    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Ends the gang, unless it has ended: its members learn it when they look.
    pub(crate) fn end(&self, why: Ended) {
        let word = match why {
            Ended::Cancelled => CANCELLED,
            Ended::Panicked { member } => PANICKED | (member as u32) << CODE_BITS,
            Ended::Left { member } => LEFT | (member as u32) << CODE_BITS,
        };
        // Relaxed: the fence orders it before the breaking (Invariant 2); a member that looks early looks again.
        let _ = self.ended.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
        self.shatter(if matches!(why, Ended::Panicked { .. }) {
            Broken::Panicked
        } else {
            Broken::Left
        });
    }

    /// A member has returned: nobody may wait for it any more. Phases that it was in stay crossed.
    fn leave(&self, member: usize) {
        // Relaxed: as above.
        let _ =
            self.left.compare_exchange(0, member as u32 + 1, Ordering::Relaxed, Ordering::Relaxed);
        self.shatter(Broken::Left);
    }

    fn shatter(&self, why: Broken) {
        // Release: pairs with the fence of `why_broken`.
        fence(Ordering::Release);
        self.barrier.shatter(why);
    }

    /// Whether the gang has ended.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Ended> {
        // Relaxed: who ends it publishes nothing with it.
        match self.ended.load(Ordering::Relaxed) {
            0 => Ok(()),
            word => Err(Self::reason(word)),
        }
    }

    #[cold]
    fn reason(word: u32) -> Ended {
        let member = (word >> CODE_BITS) as usize;
        match word & ((1 << CODE_BITS) - 1) {
            CANCELLED => Ended::Cancelled,
            PANICKED => Ended::Panicked { member },
            _ => Ended::Left { member },
        }
    }

    /// Why the barrier is broken, which the caller has found.
    #[cold]
    pub(crate) fn why_broken(&self) -> Ended {
        // Acquire: pairs with the fence of `shatter`.
        fence(Ordering::Acquire);
        self.check().err().unwrap_or_else(|| {
            // Relaxed: as above.
            let left = self.left.load(Ordering::Relaxed);
            Ended::Left { member: left.saturating_sub(1) as usize }
        })
    }

    /// All members have ended, and nobody but handles and scopes has a share of the closure.
    pub(crate) fn set_done(&self) {
        // Release: pairs with the Acquire of `is_done`.
        self.done.store(1, Ordering::Release);
        park::wake_all(&self.done);
    }

    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release above: the results are there.
        self.done.load(Ordering::Acquire) != 0
    }

    /// Whether a member has panicked. Known for good when the gang is done.
    pub(crate) fn has_panicked(&self) -> bool {
        // Relaxed: `is_done` orders it.
        self.panicked.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until all members have ended. A member of a gang gives its seat away meanwhile.
    pub(crate) fn wait(&self) {
        if self.is_done() {
            return;
        }
        let sleep = || {
            while !self.is_done() {
                park::wait(&self.done, 0, Deadline::NEVER);
            }
        };
        Post::with_current(|current| match current {
            Some(post) => post.suspended(sleep),
            None => sleep(),
        });
    }
}

/// What became of a member.
pub(crate) enum Outcome<R> {
    Returned(R),
    Ended,
    Panicked(Box<dyn Any + Send>),
}

/// A gang without its types.
pub(crate) trait Run: Send + Sync {
    fn team(&self) -> &Arc<Team>;

    /// What member `index` does.
    ///
    /// # Safety
    ///
    /// Once for each.
    unsafe fn run(&self, index: usize, post: &Rc<Post>);

    /// Drops what became of the members, but for the first panic, if nobody has asked before.
    ///
    /// # Safety
    ///
    /// After the gang is done, by one thread at a time.
    unsafe fn take_panic(&self) -> Option<Box<dyn Any + Send>>;
}

/// A gang whose results can be had.
pub(crate) trait Results<R>: Run {
    /// What became of the members, if nobody has asked before.
    ///
    /// # Safety
    ///
    /// After the gang is done, by one thread at a time.
    unsafe fn take(&self) -> Vec<Option<Outcome<R>>>;
}

pub(crate) struct Gang<F, R> {
    team: Arc<Team>,
    body: F,
    outcomes: Box<[Slot<R>]>,
}

struct Slot<R>(UnsafeCell<Option<Outcome<R>>>);

// SAFETY: its member writes it, and whoever joins the gang takes it afterwards.
unsafe impl<R: Send> Sync for Slot<R> {}
// SAFETY: as what is in it; a panic's payload is `Send`.
unsafe impl<R: Send> Send for Slot<R> {}

impl<F, R> Gang<F, R> {
    pub(crate) fn new(id: u64, members: usize, body: F) -> Self {
        let outcomes = (0..members).map(|_| Slot(UnsafeCell::new(None))).collect();
        Self { team: Arc::new(Team::new(id, members)), body, outcomes }
    }
}

impl<F, R> Run for Gang<F, R>
where
    F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync,
    R: Send,
{
    fn team(&self) -> &Arc<Team> {
        &self.team
    }

    unsafe fn run(&self, index: usize, post: &Rc<Post>) {
        let team = &self.team;
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            post.enter();
            let mut member = Member::new(index, team.clone(), post.clone());
            (self.body)(&mut member)
        }));
        let outcome = match outcome {
            Ok(Ok(result)) => {
                team.leave(index);
                Outcome::Returned(result)
            }
            Ok(Err(why)) => {
                team.end(why);
                Outcome::Ended
            }
            Err(payload) => {
                // Relaxed: read when the gang is done.
                team.panicked.store(1, Ordering::Relaxed);
                team.end(Ended::Panicked { member: index });
                Outcome::Panicked(payload)
            }
        };
        // SAFETY: this member's own, and the gang is not done.
        self.outcomes[index].0.with_mut(|mine| unsafe { *mine = Some(outcome) });
    }

    unsafe fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        // SAFETY: as the caller promises.
        let outcomes = unsafe { self.take() };
        outcomes.into_iter().flatten().find_map(|outcome| match outcome {
            Outcome::Panicked(payload) => Some(payload),
            _ => None,
        })
    }
}

impl<F, R> Results<R> for Gang<F, R>
where
    F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync,
    R: Send,
{
    unsafe fn take(&self) -> Vec<Option<Outcome<R>>> {
        // SAFETY: the members have ended, and one thread takes at a time, as the caller promises.
        let taken = self.outcomes.iter().map(|slot| slot.0.with_mut(|it| unsafe { (*it).take() }));
        taken.collect()
    }
}

/// What a gang comes to: the results of all, or why not.
pub(crate) fn verdict<R>(
    team: &Team,
    outcomes: Vec<Option<Outcome<R>>>,
) -> Result<Vec<R>, GangError> {
    let mut results = Vec::with_capacity(outcomes.len());
    let mut panicked = None;
    for (member, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Some(Outcome::Returned(result)) => results.push(result),
            Some(Outcome::Panicked(payload)) => {
                panicked.get_or_insert((member, payload));
            }
            Some(Outcome::Ended) | None => {}
        }
    }
    match panicked {
        Some((member, payload)) => Err(GangError::Panicked { member, payload }),
        None if results.len() == team.members => Ok(results),
        None => Err(match team.why_broken() {
            Ended::Cancelled => GangError::Cancelled,
            Ended::Left { member } | Ended::Panicked { member } => GangError::Left { member },
        }),
    }
}
