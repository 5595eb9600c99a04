//! The threads, each of which moves the same disks from beginning to end.
//!
//! A thread goes through its moves in the order of the [plan](super::plan). For each it looks under
//! the lock of the peg whether it is its turn. If it is not, the thread leaves its number there and
//! waits at its [post](super::post) until the thread that makes the step before wakes it. So the
//! amount of synchronization of a thread depends on when the other threads do their steps, as the
//! paper reports of its program: *to accomplish this task it needs to do an amount of
//! synchronization that depends on the relative timing of events in other threads* (section 5).

use super::board::{Attempt, Board, Scene, Step};
use super::options::{DISKS, MAX_MOVES, Options, PEGS, Refused};
use super::outcome::{Expected, Run, Share};
use super::plan::{Plan, columns};
use super::post::{Broken, Post};
use super::schedule::{Disk, Move, moves_needed};
use crate::crew::{self, Affinity, MAX_THREADS, Shared};
use crate::named::{Ledger, Locksmith};
use crate::pace::Pace;
use crate::waits::Waits;
use core::time::Duration;
use lock_api::RawMutex;
use stanchion_machine::clock;
use stanchion_machine::sync::Arc;

/// Instructions of finding out which move is next, and of the calls to make it.
const MOVE: u64 = 200;

/// The time from one reading of the display for the watcher to the next, in nanoseconds.
const WATCH_NS: u64 = 100_000_000;

/// Runs with locks of type `L`.
///
/// ```
/// use stanchion_applications::hanoi::{self, Options};
/// let options = Options { disks: 16, threads: 4, ..Options::default() };
/// let run = hanoi::run::<parking_lot::RawMutex>(&options)?;
/// assert_eq!((run.moves, run.needed, run.fault), (79, 79, None));
/// # Ok::<(), hanoi::Refused>(())
/// ```
///
/// # Errors
///
/// [`Refused`] names the option that is no good, and what would be.
///
/// # Panics
///
/// If a move is against the rules: only a lock that does not exclude can cause that. If a thread
/// cannot be started. With the panic of a thread, if one panics, as it may if the lock does.
pub fn run<L: RawMutex + Send + Sync + 'static>(options: &Options) -> Result<Run, Refused> {
    run_with(options, &|_| L::INIT, &mut |_| ())
}

/// Does the same as [`run`] with locks from `make` and with a `watch`. `make` gets the name of each
/// lock (`peg 3`, `disk 17`, `row 40`, `column 1`, `count`, `post 5` of thread 5). The calling
/// thread calls `watch` with the display every 100 ms or so, while it also works, and once at the
/// end.
///
/// # Errors
///
/// As [`run`].
///
/// # Panics
///
/// As [`run`], and if `make` or `watch` panics.
pub fn run_with<L: RawMutex + Send + Sync + 'static>(
    options: &Options,
    make: &dyn Fn(&str) -> L,
    watch: &mut dyn FnMut(&Scene),
) -> Result<Run, Refused> {
    let needed = check(options)?;
    let &Options { disks, pegs, threads, rounds, pinned, .. } = options;
    let began = clock::now();
    let plan = Plan::new(disks, pegs);
    let moves = plan.len() as u64 * u64::from(rounds);
    let expected = Expected {
        disks,
        goal: plan.peg(pegs as u8 - 1, rounds - 1).into(),
        moves,
        passed: plan.columns() * u64::from(rounds),
    };
    let pace = Pace::new(options.instruction_ns);
    let mut locks = Locksmith::new(make);
    let board = Board::new(options, &mut locks);
    let posts = (0..threads).map(|thread| Post::new(thread, pace, &mut locks)).collect();
    let names = locks.names();
    let locks = names.len();
    let game = Arc::new(Game { options: *options, plan, board, posts, moves, locks });

    let workers = crew::run(
        &game,
        threads,
        if pinned { Affinity::RoundRobin } else { Affinity::Free },
        |processor| Worker::work(&game, 0, processor, &mut *watch),
        |game, thread, processor| Worker::work(game, thread, processor, &mut |_| ()),
    );

    let elapsed = Duration::from_nanos(clock::now().nanos_since(began));
    let (mut ledger, mut turns) = (Ledger::new(locks), Waits::default());
    for worker in &workers {
        ledger.merge(&worker.ledger);
        turns.merge(&worker.turns);
    }
    let mut unrecorded = Ledger::new(locks);
    watch(&game.board.scene(moves, &mut unrecorded));
    let remains = game.board.remains(&mut unrecorded);
    Ok(Run {
        moves: workers.iter().map(|worker| worker.share.moves).sum(),
        needed,
        chain: game.plan.chain() as u64,
        goal: expected.goal,
        fault: expected.fault(&remains),
        pegs: remains.pegs,
        elapsed,
        locks: ledger.named(&names),
        turns,
        threads: workers.iter().map(|worker| worker.share).collect(),
    })
}

/// Moves of a round, if the options are good.
fn check(options: &Options) -> Result<u64, Refused> {
    let &Options { disks, pegs, threads, rounds, .. } = options;
    if !DISKS.contains(&disks) {
        return Err(Refused::Disks(disks));
    }
    if !PEGS.contains(&pegs) {
        return Err(Refused::Pegs(pegs));
    }
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(Refused::Threads(threads));
    }
    if rounds == 0 {
        return Err(Refused::Rounds);
    }
    let moves = moves_needed(disks, pegs);
    if moves > MAX_MOVES {
        return Err(Refused::Moves { disks, pegs, moves });
    }
    Ok(moves)
}

/// The data that the threads share.
struct Game<L> {
    /// The options of the run.
    options: Options,
    /// The plan of the moves.
    plan: Plan,
    /// The pegs, the disks and the display.
    board: Board<L>,
    /// The posts of the threads, by number.
    posts: Vec<Post<L>>,
    /// Of all rounds.
    moves: u64,
    /// The number of locks.
    locks: usize,
}

impl<L: RawMutex + Send + Sync + 'static> Shared for Game<L> {
    fn give_up(&self) {
        for post in &self.posts {
            post.give_up();
        }
    }
}

/// The data of one thread.
struct Worker {
    /// The number of the thread.
    thread: usize,
    /// The work that it has done.
    share: Share,
    /// The waits for locks that it has had.
    ledger: Ledger,
    /// The waits for its turns.
    turns: Waits,
}

impl Worker {
    fn work<L: RawMutex>(
        game: &Game<L>,
        thread: usize,
        processor: Option<usize>,
        watch: &mut dyn FnMut(&Scene),
    ) -> Self {
        let ledger = Ledger::new(game.locks);
        let share = Share { moves: 0, processor };
        let mut worker = Self { thread, share, ledger, turns: Waits::default() };
        // `Broken` means that another thread has panicked: the caller gets that thread's panic.
        let _ = worker.rounds(game, watch);
        worker
    }

    fn rounds<L: RawMutex>(
        &mut self,
        game: &Game<L>,
        watch: &mut dyn FnMut(&Scene),
    ) -> Result<(), Broken> {
        let Options { disks, threads, rounds, instruction_ns, .. } = game.options;
        let pace = Pace::new(instruction_ns);
        let mine =
            game.plan.moves_of((self.thread..disks).step_by(threads).map(|disk| disk as Disk));
        let mut watched = clock::now();
        for round in 0..rounds {
            for &index in &mine {
                pace.compute(MOVE);
                let (made, lift, lower) = game.plan.planned(index, round);
                self.step(game, made, Step::Lift, lift)?;
                self.carry(game, made);
                self.step(game, made, Step::Lower, lower)?;
                game.board.count(&mut self.ledger);
                self.share.moves += 1;
                if self.thread == 0 && clock::now().nanos_since(watched) >= WATCH_NS {
                    watch(&game.board.scene(game.moves, &mut self.ledger));
                    watched = clock::now();
                }
            }
        }
        Ok(())
    }

    /// Makes a step when it is its turn.
    fn step<L: RawMutex>(
        &mut self,
        game: &Game<L>,
        made: Move,
        step: Step,
        number: u64,
    ) -> Result<(), Broken> {
        let mut began = None;
        let next = loop {
            match game.board.attempt(made, step, number, self.thread, &mut self.ledger) {
                Attempt::Made(next) => break next,
                Attempt::TooEarly => {
                    began.get_or_insert_with(clock::now);
                    game.posts[self.thread].wait(&mut self.ledger)?;
                }
            }
        };
        match began {
            Some(began) => self.turns.waited(clock::now().nanos_since(began)),
            None => self.turns.passed(),
        }
        if let Some(next) = next {
            game.posts[next].send(&mut self.ledger);
        }
        Ok(())
    }

    /// Carries a disk past the pegs between, without a lock for most of the time.
    fn carry<L: RawMutex>(&mut self, game: &Game<L>, made: Move) {
        let pegs = u64::from(made.from.abs_diff(made.to)) + 1;
        let each = game.options.work_ns / pegs;
        for peg in columns(made) {
            game.board.pass(peg, &mut self.ledger, || {
                if each > 0 {
                    stanchion_machine::burn(each);
                }
            });
        }
    }
}
