//! Threads that compute and meet, compute and meet: the synthetic program of Feitelson and Rudolph.
//!
//! ```text
//! parfor i := 1 to n
//!     for j := 1 to k
//!         compute for tᵢⱼ
//!         sync
//! ```
//!
//! > Each instance of the program, i.e. each execution, is characterized by three parameters:
//! > LOAD, the number of competing gangs; GRAIN, the number of instructions in each iteration
//! > [...]; VAR, the difference between the minimal and maximal numbers of instructions in
//! > different activities in each iteration. The actual numbers are selected at random from a
//! > uniform distribution between GRAIN and GRAIN+VAR.
//!
//! [`Team::member`] is the work of a thread. Two closures tell it how it computes and how it meets
//! the others. So the same program runs in gangs, on threads that wait busily, and on threads that
//! block, on any machine.
//!
//! Why not `k` iterations, as in the paper: of several programs one ends first, and the others then
//! have less company than they should. So all run through a [`Window`] of time, in which each
//! counts its iterations, and stop when it is over.
//!
//! # Invariants
//!
//! 1. All members of a team do the same number of iterations. Member 0 decides: it writes the
//!    number of the last one before it comes to that iteration's meeting, and the others read it
//!    after.
//! 2. The time that is drawn for a member and an iteration depends on the seed and on those two
//!    only.
//!
//! Source: D. Feitelson, L. Rudolph, *Gang scheduling performance benefits for fine-grain
//! synchronization*, JPDC 1992, figure 1 and section 3.3.

mod window;

pub use window::Window;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::topology::CachePadded;

use crate::mix::mix;

/// The time that each member computes between two meetings, in nanoseconds: from `least` to
/// `least + spread`, all equally likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grain {
    /// The paper's GRAIN.
    pub least: u64,
    /// The paper's VAR.
    pub spread: u64,
    /// The time that one member, another in each iteration, takes beside that. So threads can be
    /// more unequal than evenly drawn times make them.
    pub slow: u64,
    /// The number of members, for the choice of the slow one.
    pub members: usize,
}

impl Grain {
    /// Returns the time that `member` computes in `iteration`.
    #[must_use]
    pub fn draw(self, seed: u64, member: usize, iteration: u64) -> u64 {
        let drawn = mix(seed ^ mix(iteration ^ mix(member as u64)));
        let is_slow =
            self.slow > 0 && up_to(mix(seed ^ iteration), self.members as u64) == member as u64;
        self.least + up_to(drawn, self.spread + 1) + if is_slow { self.slow } else { 0 }
    }
}

/// `drawn` of 2⁶⁴, brought to the numbers below `bound`: even enough, for bounds here are far below
/// 2⁶⁴.
fn up_to(drawn: u64, bound: u64) -> u64 {
    ((u128::from(drawn) * u128::from(bound)) >> 64) as u64
}

/// The iterations that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lap {
    /// Meetings within the window. Not the time between the first and the last of them: a gang has
    /// its turns in the window and no more, and from the first meeting to the last there are fewer
    /// pauses than turns.
    pub iterations: u64,
    /// All that this member has done, those outside the window among them.
    pub all: u64,
}

/// The data that the members of one program share.
///
/// ```
/// use std::sync::{Arc, Barrier};
/// use std::time::Duration;
/// use stanchion_applications::iterations::{Grain, Team, Window};
///
/// let window = Arc::new(Window::new(2, Duration::ZERO, Duration::from_millis(2)));
/// let team = Team::new(Grain { least: 100, spread: 100, ..Grain::default() }, 1, window);
/// let barrier = Barrier::new(2);
/// let laps: Vec<_> = std::thread::scope(|scope| {
///     let member = |index| {
///         team.member(index, stanchion_machine::burn, || Ok::<_, ()>(drop(barrier.wait())))
///     };
///     let other = scope.spawn(move || member(1));
///     vec![member(0).unwrap(), other.join().unwrap().unwrap()]
/// });
/// assert_eq!(laps[0].all, laps[1].all);
/// ```
#[derive(Debug)]
pub struct Team {
    /// The times to draw from.
    grain: Grain,
    /// The seed of the draws.
    seed: u64,
    /// The time in which iterations count.
    window: Arc<Window>,
    /// The number of the last iteration; none is so high before it is known.
    last: CachePadded<AtomicU64>,
}

impl Team {
    /// Returns a program with times drawn from `seed`.
    pub fn new(grain: Grain, seed: u64, window: Arc<Window>) -> Self {
        Self { grain, seed, window, last: CachePadded::new(AtomicU64::fresh(u64::MAX)) }
    }

    /// Member `index`: computes and meets the others until the window is over. Member 0 counts; the
    /// laps of the others say only how much they did.
    ///
    /// # Errors
    ///
    /// That of `meet`, at once.
    pub fn member<E>(
        &self,
        index: usize,
        mut compute: impl FnMut(u64),
        mut meet: impl FnMut() -> Result<(), E>,
    ) -> Result<Lap, E> {
        self.window.started();
        let mut lap = Lap::default();
        for iteration in 0.. {
            compute(self.grain.draw(self.seed, index, iteration));
            if index == 0 && self.window.is_over() {
                // Relaxed: the meeting orders it before the loads of the others (Invariant 1).
                self.last.store(iteration, Ordering::Relaxed);
            }
            meet()?;
            lap.all += 1;
            if index == 0 && self.window.is_open() {
                lap.iterations += 1;
            }
            // Relaxed: as above. A later iteration's number may be seen already: it is higher.
            if self.last.load(Ordering::Relaxed) <= iteration {
                break;
            }
        }
        Ok(lap)
    }
}

/// A thread that never waits: computes `grain` nanoseconds at a time until the window is over, and
/// then does `between`. Returns how often.
pub fn compute_bound(
    window: &Window,
    grain: u64,
    mut compute: impl FnMut(u64),
    mut between: impl FnMut(),
) -> u64 {
    window.started();
    let mut times = 0;
    while !window.is_over() {
        compute(grain);
        between();
        times += 1;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_are_drawn_evenly_and_again_the_same() {
        let grain = Grain { least: 100, spread: 300, ..Grain::default() };
        let drawn: Vec<u64> = (0..30_000).map(|iteration| grain.draw(7, 3, iteration)).collect();
        assert!(drawn.iter().all(|nanos| (100..=400).contains(nanos)));
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        // Standard error 0.5.
        assert!((mean - 250.0).abs() < 2.5, "{mean}");
        assert_eq!(drawn[17], grain.draw(7, 3, 17));
        assert!(
            (0..100).any(|iteration| grain.draw(7, 0, iteration) != grain.draw(7, 1, iteration))
        );
        assert_eq!(Grain { least: 5, ..Grain::default() }.draw(1, 1, 1), 5);
        // One slow member in each iteration, each as often as the others.
        let grain = Grain { slow: 7, members: 4, ..Grain::default() };
        let mut slow = [0; 4];
        for iteration in 0..8_000 {
            let times: Vec<u64> = (0..4).map(|member| grain.draw(3, member, iteration)).collect();
            assert_eq!(times.iter().sum::<u64>(), 7);
            slow[times.iter().position(|&nanos| nanos == 7).unwrap()] += 1;
        }
        // Standard deviation 39.
        assert!(slow.iter().all(|&times: &i32| (times - 2_000).abs() < 200), "{slow:?}");
    }
}
