//! The time of an iteration when several programs of threads that meet at a barrier share the
//! processors.
//!
//! Feitelson and Rudolph (Journal of Parallel and Distributed Computing, 1992) take a program of
//! `n` threads, each on a processor of its own. In every iteration each thread computes for a
//! while, then all meet (figure 1 of the paper). `ℓ` such threads share each processor, and the
//! scheduler gives each a quantum in turn. The time of an iteration depends on how threads wait,
//! and on which threads the scheduler runs at the same time.
//!
//! | waiting | scheduling | function | equations |
//! | --- | --- | --- | --- |
//! | busily | gangs: all threads of a program at once | [`System::gang`] | 5, 6 |
//! | busily | each processor for itself | [`System::uncoordinated`] | 7, 8, and below |
//! | by blocking, coarse grain | the same | [`System::blocking_coarse`] | 9, 10 |
//! | by blocking, fine grain | the same | [`System::blocking`] | 11, 12 |
//! | by blocking, others only compute | the same | [`System::blocking_among_busy`] | 13 |
//!
//! A coarse grain is many quanta an iteration, a fine one many iterations a quantum; the other
//! programs are alike. For equation 8 the function also has the bound below it.
//!
//! [`Iteration`] is the input (equations 1 to 4). [`makbilan`] has the figures of the paper's
//! machine (14, table 1). [`phase`] tells which way is better when (15 to 17). [`simulate`] plays
//! figure 1 itself under each scheduler, without any of the formulas.
//!
//! All times are in one unit of the caller's choice. The paper's, and those of [`makbilan`], are
//! milliseconds. The paper's equations with T are k times those with t, so there is one function
//! for both: the time of an iteration.
//!
//! # Findings about the paper
//!
//! # What checking the paper showed
//!
//! 1. The [`overlap`] λⁿ/Λⁿ⁻¹ is exact, on a loop: a point of it lies in all n segments with chance
//!    (λ/Λ)ⁿ.
//! 2. Equation 8 counts the iterations of the overlap only. Threads that are never on their
//!    processors all at once still finish an iteration a round, or nearly two, and those are added.
//!    So the paper's "maximum between the expression and 1" is nearer to their sum. If the overlap
//!    has room for two iterations, four threads at load 4 are twice as fast as the equation says.
//!    [`simulate::uncoordinated`] shows it.
//! 3. Equation 12 has no idle time: it assumes another ready thread whenever one blocks. With load
//!    1 it gives less than the longest thread needs, t_p + t_w (unless α makes up for it: a thread
//!    that yields to no other comes back at once, and yields again).
//! 4. Equations 15, 16 and 17 follow from 6, 12 and 13 without approximation. Figure 9 however has
//!    `(n-1)/n` = 1: "t_p + 2 t_w ≤ 300 µs" is 269 µs for ten threads, and the divide of σ = 1 lies
//!    at 0.269 ms, not 0.3.

pub mod makbilan;
pub mod phase;
pub mod simulate;

/// Why there is no such system or iteration.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GangError {
    /// A time that cannot be.
    #[error("{what} = {value}: give a finite time {least}")]
    Time {
        /// The name of the parameter.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The least that it may be.
        least: &'static str,
    },
    /// No thread, or no program.
    #[error("{what} = 0: give at least 1")]
    None {
        /// Of what.
        what: &'static str,
    },
    /// Blocking that costs less than nothing.
    #[error("alpha = {value}: give a finite factor of 0 or more; 1 is a context switch")]
    Alpha {
        /// Its value.
        value: f64,
    },
    /// Not a part.
    #[error("sigma = {value}: give a ratio above 0 and at most 1")]
    Sigma {
        /// Its value.
        value: f64,
    },
    /// Threads that took part in different numbers of iterations.
    #[error(
        "thread number {thread} has {iterations} iterations, thread number 0 has {expected}: give a time for each thread in each iteration"
    )]
    Ragged {
        /// The number of the thread, from 0.
        thread: usize,
        /// The number of its iterations.
        iterations: usize,
        /// The number of iterations of the first.
        expected: usize,
    },
}

fn time(what: &'static str, value: f64) -> Result<f64, GangError> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(GangError::Time { what, value, least: "of 0 or more" })
    }
}

fn alpha_of(value: f64) -> Result<f64, GangError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(GangError::Alpha { value }) }
}

/// The demands of an iteration, on average: the time that a thread computes and the time that it
/// waits when each has a processor of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// The time that a thread computes (t_p).
    processing: f64,
    /// The time that a thread waits (t_w).
    waiting: f64,
}

impl Iteration {
    /// Returns an iteration of so much processing (t_p, with the cost of meeting) and waiting
    /// (t_w).
    ///
    /// # Errors
    ///
    /// [`GangError::Time`] if either is negative or not finite.
    pub fn new(processing: f64, waiting: f64) -> Result<Self, GangError> {
        Ok(Self { processing: time("processing", processing)?, waiting: time("waiting", waiting)? })
    }

    /// Returns the iteration of threads with known processing times, `times[thread][iteration]`:
    /// equations 1 to 4.
    ///
    /// # Errors
    ///
    /// [`GangError`] if there is no thread or no iteration, if threads differ in their number of
    /// iterations, or if a time is negative or not finite.
    ///
    /// ```
    /// use stanchion_formulas::gang::Iteration;
    /// // Two threads, two iterations: the longest take 3 and 4, so the waits are 2, 0, 0 and 0.
    /// let iteration = Iteration::of(&[[1.0, 4.0], [3.0, 4.0]])?;
    /// assert_eq!((iteration.processing(), iteration.waiting()), (3.0, 0.5));
    /// # Ok::<(), stanchion_formulas::gang::GangError>(())
    /// ```
    pub fn of<T: AsRef<[f64]>>(times: &[T]) -> Result<Self, GangError> {
        let first = times.first().ok_or(GangError::None { what: "threads" })?;
        let expected = first.as_ref().len();
        if expected == 0 {
            return Err(GangError::None { what: "iterations" });
        }
        let mut longest = vec![0.0_f64; expected];
        let mut sum = 0.0;
        for (thread, times) in times.iter().enumerate() {
            let times = times.as_ref();
            if times.len() != expected {
                return Err(GangError::Ragged { thread, iterations: times.len(), expected });
            }
            for (longest, &value) in longest.iter_mut().zip(times) {
                let value = time("a processing time", value)?;
                sum += value;
                *longest = longest.max(value); // equation 2
            }
        }
        let iterations = expected as f64;
        let processing = sum / (times.len() as f64 * iterations); // equation 1
        let full = longest.iter().sum::<f64>() / iterations;
        // Equations 3 and 4: the mean of what each lacks to the longest, and rounding may leave
        // less than nothing.
        Self::new(processing, (full - processing).max(0.0))
    }

    /// Returns the iteration of `members` threads with times drawn evenly between `least` and
    /// `least + spread`: the longest of n takes `least + n/(n+1)·spread`.
    ///
    /// # Errors
    ///
    /// [`GangError`] if a time is negative or not finite, or no thread takes part.
    pub fn uniform(least: f64, spread: f64, members: u32) -> Result<Self, GangError> {
        if members == 0 {
            return Err(GangError::None { what: "members" });
        }
        let (least, spread) = (time("least", least)?, time("spread", spread)?);
        let n = f64::from(members);
        Self::new(least + spread / 2.0, spread * (n - 1.0) / (2.0 * (n + 1.0)))
    }

    /// t_p.
    #[must_use]
    pub fn processing(self) -> f64 {
        self.processing
    }

    /// t_w.
    #[must_use]
    pub fn waiting(self) -> f64 {
        self.waiting
    }

    /// t_p + t_w: the longest thread's time, which an iteration takes on processors of its own.
    #[must_use]
    pub fn full(self) -> f64 {
        self.processing + self.waiting
    }
}

/// The programs that share the processors, and the actions of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct System {
    /// The quantum (τq).
    quantum: f64,
    /// The cost of a switch (τcs).
    switch: f64,
    /// The number of programs (ℓ).
    load: u32,
    /// The number of threads of a program (n).
    members: u32,
}

impl System {
    /// Returns a system of `load` (ℓ) programs of `members` (n) threads each on n processors, with
    /// the scheduler's `quantum` (τq) and its cost of a `switch` (τcs).
    ///
    /// # Errors
    ///
    /// [`GangError`] if the quantum is not above 0, a time is not finite, or there is no program or
    /// no member.
    pub fn new(quantum: f64, switch: f64, load: u32, members: u32) -> Result<Self, GangError> {
        if !quantum.is_finite() || quantum <= 0.0 {
            return Err(GangError::Time { what: "quantum", value: quantum, least: "above 0" });
        }
        let switch = time("switch", switch)?;
        match (load, members) {
            (0, _) => Err(GangError::None { what: "load" }),
            (_, 0) => Err(GangError::None { what: "members" }),
            _ => Ok(Self { quantum, switch, load, members }),
        }
    }

    /// τq.
    #[must_use]
    pub fn quantum(self) -> f64 {
        self.quantum
    }

    /// τcs.
    #[must_use]
    pub fn switch(self) -> f64 {
        self.switch
    }

    /// ℓ.
    #[must_use]
    pub fn load(self) -> u32 {
        self.load
    }

    /// n.
    #[must_use]
    pub fn members(self) -> u32 {
        self.members
    }

    /// ℓ(τq + τcs): until every thread has had its quantum.
    #[must_use]
    pub fn round(self) -> f64 {
        self.ell() * (self.quantum + self.switch)
    }

    fn ell(self) -> f64 {
        f64::from(self.load)
    }

    /// Returns 1 + τcs/τq.
    fn overhead(self) -> f64 {
        1.0 + self.switch / self.quantum
    }

    /// Returns (n-1)/n: all but the last to arrive pay for blocking.
    fn blocking_share(self) -> f64 {
        f64::from(self.members - 1) / f64::from(self.members)
    }

    /// Equation 6: the time of an iteration with gangs, waiting busily.
    ///
    /// ```
    /// use stanchion_formulas::gang::{Iteration, System};
    /// let iteration = Iteration::new(0.3, 0.1)?;
    /// // Milliseconds: three programs, a quantum of 50, a switch of 0.2.
    /// assert!((System::new(50.0, 0.2, 3, 10)?.gang(iteration) - 3.0 * 0.4 * 1.004).abs() < 1e-12);
    /// # Ok::<(), stanchion_formulas::gang::GangError>(())
    /// ```
    #[must_use]
    pub fn gang(self, iteration: Iteration) -> f64 {
        self.overhead() * iteration.full() * self.ell()
    }

    /// Equation 8 with its bound, a round: the time of an iteration without gangs, waiting busily.
    ///
    /// Coarse grain (t_p + t_w of many quanta) it does not describe: there equation 6 holds, and
    /// this says no more than a round.
    #[must_use]
    pub fn uncoordinated(self, iteration: Iteration) -> f64 {
        self.uncoordinated_unbounded(iteration).min(self.round())
    }

    /// Equation 8 as printed: a round, over the iterations that fit into the [`overlap`].
    #[must_use]
    pub fn uncoordinated_unbounded(self, iteration: Iteration) -> f64 {
        self.round() * iteration.full() / overlap(self.quantum, self.round(), self.members)
    }

    /// Equation 10: the time of an iteration of many quanta, blocking, when all programs are alike.
    #[must_use]
    pub fn blocking_coarse(self, iteration: Iteration) -> f64 {
        self.overhead() * iteration.processing() * self.ell()
    }

    /// Equation 12: the time of an iteration much shorter than a quantum, blocking, when all
    /// programs are alike. Blocking costs `alpha` switches.
    ///
    /// # Errors
    ///
    /// [`GangError::Alpha`] if `alpha` is negative or not finite.
    pub fn blocking(self, iteration: Iteration, alpha: f64) -> Result<f64, GangError> {
        let blocks = self.blocking_share() * alpha_of(alpha)? * self.switch;
        Ok((iteration.processing() + blocks) * self.ell())
    }

    /// Equation 13: the time of an iteration of a program that blocks, among `load - 1` that only
    /// compute, served strictly in turn.
    ///
    /// # Errors
    ///
    /// [`GangError::Alpha`] if `alpha` is negative or not finite.
    pub fn blocking_among_busy(self, iteration: Iteration, alpha: f64) -> Result<f64, GangError> {
        let alpha = alpha_of(alpha)?;
        let others = (self.ell() - 1.0) * self.quantum;
        Ok(iteration.processing() + others + (self.ell() + alpha - 1.0) * self.switch)
    }
}

/// λⁿ/Λⁿ⁻¹: how long `count` segments of `length` (λ) put at random on a loop of `circumference`
/// (Λ) all overlap, on average.
///
/// Exact if λ ≤ Λ. 0 segments leave the whole loop.
///
/// ```
/// use stanchion_formulas::gang::overlap;
/// assert_eq!(overlap(50.0, 100.0, 1), 50.0);
/// assert_eq!(overlap(50.0, 100.0, 2), 25.0);
/// ```
#[must_use]
pub fn overlap(length: f64, circumference: f64, count: u32) -> f64 {
    circumference * (length / circumference).powf(f64::from(count))
}

#[cfg(test)]
mod tests;
