//! How long an iteration takes when several programs of threads that meet at a barrier share the
//! processors.
//!
//! Feitelson and Rudolph (Journal of Parallel and Distributed Computing, 1992) take a program of
//! `n` threads, each on a processor of its own. In every iteration each thread computes for a
//! while, then all meet (figure 1 of the paper). `ℓ` such threads share each processor, and the
//! scheduler gives each a quantum in turn. How long is an iteration, by how threads wait and by who
//! is put on the processors at the same time?
//!
//! | waiting | scheduling | function | equations |
//! | --- | --- | --- | --- |
//! | busily | gangs: all threads of a program at once | [`System::gang`] | 5, 6 |
//! | busily | each processor for itself | [`System::uncoordinated`] | 7, 8 and the bound below them |
//! | by blocking, many quanta an iteration, others alike | the same | [`System::blocking_coarse`] | 9, 10 |
//! | by blocking, many iterations a quantum, others alike | the same | [`System::blocking`] | 11, 12 |
//! | by blocking, others only compute | the same | [`System::blocking_among_busy`] | 13 |
//!
//! [`Iteration`] is what goes in (equations 1 to 4), [`makbilan`] what the paper's machine had (14,
//! table 1), [`phase`] which way is better when (15 to 17), and [`simulate`] plays figure 1 itself
//! under each scheduler, without any of the formulas.
//!
//! All times are in one unit, whichever the caller likes; the paper's, and those of [`makbilan`],
//! are milliseconds. The paper's equations with T are k times those with t, so there is one
//! function for both: the time of an iteration.
//!
//! # What checking the paper showed
//!
//! 1. The [`overlap`] λⁿ/Λⁿ⁻¹ is exact, on a loop: a point of it lies in all n segments with chance
//!    (λ/Λ)ⁿ.
//! 2. Equation 8 counts the iterations of the overlap only. Threads that are never on their
//!    processors all at once still finish an iteration a round, or nearly two, and those come on
//!    top, so the paper's "maximum between the expression and 1" is nearer to their sum: where the
//!    overlap has room for two iterations, four threads at load 4 are twice as fast as the equation
//!    says. [`simulate::uncoordinated`] shows it.
//! 3. Equation 12 has no idle time: it wants another thread ready whenever one blocks. With load 1
//!    it says less than the longest thread needs, t_p + t_w (unless α makes up for it: a thread
//!    that yields to nobody comes back at once, and yields again).
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
        /// Which.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it should be.
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
        /// What it is.
        value: f64,
    },
    /// Not a part.
    #[error("sigma = {value}: give a ratio above 0 and at most 1")]
    Sigma {
        /// What it is.
        value: f64,
    },
    /// Threads that took part in different numbers of iterations.
    #[error(
        "thread number {thread} has {iterations} iterations, thread number 0 has {expected}: give a time for each thread in each iteration"
    )]
    Ragged {
        /// Which, from 0.
        thread: usize,
        /// How many it has.
        iterations: usize,
        /// How many the first has.
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

/// What an iteration asks for, on average: the time a thread computes and the time it waits when
/// each has a processor of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    processing: f64,
    waiting: f64,
}

impl Iteration {
    /// One of so much processing (t_p, what it takes to meet included) and waiting (t_w).
    ///
    /// # Errors
    ///
    /// [`GangError::Time`] if either is negative or not finite.
    pub fn new(processing: f64, waiting: f64) -> Result<Self, GangError> {
        Ok(Self { processing: time("processing", processing)?, waiting: time("waiting", waiting)? })
    }

    /// Equations 1 to 4: that of threads whose processing times in each iteration are known,
    /// `times[thread][iteration]`.
    ///
    /// # Errors
    ///
    /// [`GangError`] if there is no thread or no iteration, if threads differ in their number of
    /// iterations, or if a time is negative or not finite.
    ///
    /// ```
    /// use stanchion_model::gang::Iteration;
    /// // Two threads, two iterations: the longest take 3 and 4, so the waits are 2, 0, 0 and 0.
    /// let iteration = Iteration::of(&[[1.0, 4.0], [3.0, 4.0]])?;
    /// assert_eq!((iteration.processing(), iteration.waiting()), (3.0, 0.5));
    /// # Ok::<(), stanchion_model::gang::GangError>(())
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

    /// That of `members` threads whose times are drawn evenly between `least` and `least + spread`:
    /// the longest of n takes `least + n/(n+1)·spread`.
    ///
    /// # Errors
    ///
    /// [`GangError`] if a time is negative or not finite, or nobody takes part.
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

/// Who shares the processors, and what the scheduler does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct System {
    quantum: f64,
    switch: f64,
    load: u32,
    members: u32,
}

impl System {
    /// `load` (ℓ) programs of `members` (n) threads each on n processors; the scheduler's `quantum`
    /// (τq) and what it costs to `switch` (τcs).
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

    /// 1 + τcs/τq.
    fn overhead(self) -> f64 {
        1.0 + self.switch / self.quantum
    }

    /// (n-1)/n: all but the last to arrive pay for blocking.
    fn who_block(self) -> f64 {
        f64::from(self.members - 1) / f64::from(self.members)
    }

    /// Equation 6: the time of an iteration with gangs, waiting busily.
    ///
    /// ```
    /// use stanchion_model::gang::{Iteration, System};
    /// let iteration = Iteration::new(0.3, 0.1)?;
    /// // Milliseconds: three programs, a quantum of 50, a switch of 0.2.
    /// assert!((System::new(50.0, 0.2, 3, 10)?.gang(iteration) - 3.0 * 0.4 * 1.004).abs() < 1e-12);
    /// # Ok::<(), stanchion_model::gang::GangError>(())
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
        let blocks = self.who_block() * alpha_of(alpha)? * self.switch;
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
/// use stanchion_model::gang::overlap;
/// assert_eq!(overlap(50.0, 100.0, 1), 50.0);
/// assert_eq!(overlap(50.0, 100.0, 2), 25.0);
/// ```
#[must_use]
pub fn overlap(length: f64, circumference: f64, count: u32) -> f64 {
    circumference * (length / circumference).powf(f64::from(count))
}

#[cfg(test)]
mod tests;
