//! The paper's programs as the experiments run them: their sizes, their numbers of threads, and the
//! result that each must have with any lock.
//!
//! | program | threads | what is checked |
//! | --- | --- | --- |
//! | Galaxy | one a processor, at least two | the sequential checksum of stars, and the display |
//! | Hanoi | one for each of 64 disks | where the disks are, and every count of the display |
//! | Regsim | one a processor, at least two | the sequential checksum of all outputs |
//!
//! The paper gives no number of threads for Galaxy; it *uses all 6 processors well* (section 3).
//! Regsim has as many threads as processors (section 5), and Hanoi has many. Threads are pinned on
//! this computer. Otherwise the system may let threads that wake each other take turns on one
//! processor, and then no thread ever finds a lock held. On a simulated machine they are not
//! pinned: its system gives a woken thread any idle processor, as the paper's did.

use std::ops::ControlFlow;
use std::time::Duration;

use stanchion_applications::regsim::{Netlist, circuits, sequential};
use stanchion_applications::{MAX_THREADS, galaxy, hanoi, regsim};
use stanchion_competitive::{Policy, RawPolicyMutex};
use stanchion_study::context::Stop;
use stanchion_study::settings::spinning::Place;

/// A program that runs with locks of a policy chosen by the caller.
pub trait Program {
    /// Runs the program once with locks from `make`, which takes the name of each lock. Returns the
    /// duration.
    fn run<P: Policy + 'static>(
        &self,
        make: &dyn Fn(&str) -> RawPolicyMutex<P>,
    ) -> Result<Duration, Stop>;

    /// Returns the number of processors that its threads run on.
    fn processors(&self) -> usize;

    /// Describes the program and its size, for a sentence of a report.
    fn describe(&self) -> String;
}

fn failed(program: &str, reason: impl std::fmt::Display) -> Stop {
    Stop::Failed(format!("{program}: {reason}"))
}

/// Two galaxies in near-collision, each star on its own course around two masses.
#[derive(Debug)]
pub struct Galaxy {
    /// The program's options.
    options: galaxy::Options,
    /// The checksum of the sequential program, which each run must have.
    checksum: u64,
    /// The processors of the machine.
    processors: usize,
}

impl Galaxy {
    /// Makes a program that runs for `steps` steps.
    pub fn new(place: &Place, steps: u64) -> Result<Self, Stop> {
        let options = galaxy::Options {
            stars: 2_000,
            steps,
            // A small chunk makes locking frequent, as a display of the paper's time did.
            chunk: 8,
            threads: threads(place.processors),
            seed: place.seed,
            pinned: place.pinned,
            instruction_ns: place.instruction_ns,
            ..galaxy::Options::default()
        };
        let checksum = galaxy::sequential::run(&options)
            .map_err(|refused| failed("Galaxy", refused))?
            .checksum;
        Ok(Self { options, checksum, processors: place.processors })
    }
}

impl Program for Galaxy {
    fn run<P: Policy + 'static>(
        &self,
        make: &dyn Fn(&str) -> RawPolicyMutex<P>,
    ) -> Result<Duration, Stop> {
        let mut watch = |_: &galaxy::Scene| ControlFlow::Continue(());
        let run = galaxy::run_with(&self.options, make, 0, &mut watch)
            .map_err(|refused| failed("Galaxy", refused))?;
        if let Some(fault) = run.fault {
            return Err(failed("Galaxy", fault));
        }
        if run.checksum != self.checksum {
            return Err(failed(
                "Galaxy",
                "the stars are not where the sequential program has them",
            ));
        }
        Ok(run.elapsed)
    }

    fn processors(&self) -> usize {
        self.processors.min(self.options.threads)
    }

    fn describe(&self) -> String {
        let galaxy::Options { stars, steps, threads, .. } = self.options;
        format!("Galaxy: {stars} stars, {steps} steps, {threads} threads")
    }
}

/// The towers of Hanoi, 64 disks on 5 pegs, each disk moved by a thread of its own.
#[derive(Debug)]
pub struct Hanoi {
    /// The program's options.
    options: hanoi::Options,
    /// The processors of the machine.
    processors: usize,
}

impl Hanoi {
    /// Makes a program that carries the tower `rounds` times from end to end.
    pub fn new(place: &Place, rounds: u32) -> Self {
        Self::with_window(place, rounds, 0, 0)
    }

    /// Makes the same program with a window system. Each `every`th disk that is carried past a peg
    /// is drawn by a call that takes `window_ns`.
    pub fn with_window(place: &Place, rounds: u32, window_ns: u64, every: u64) -> Self {
        let options = hanoi::Options {
            rounds,
            pinned: place.pinned,
            work_ns: place.carry_ns,
            draw_ns: place.draw_ns,
            window_ns,
            window_every: every,
            instruction_ns: place.instruction_ns,
            ..hanoi::Options::default()
        };
        Self { options, processors: place.processors }
    }
}

impl Program for Hanoi {
    fn run<P: Policy + 'static>(
        &self,
        make: &dyn Fn(&str) -> RawPolicyMutex<P>,
    ) -> Result<Duration, Stop> {
        let run = hanoi::run_with(&self.options, make, &mut |_| ())
            .map_err(|refused| failed("Hanoi", refused))?;
        match run.fault {
            Some(fault) => Err(failed("Hanoi", fault)),
            None => Ok(run.elapsed),
        }
    }

    fn processors(&self) -> usize {
        self.processors.min(self.options.threads)
    }

    fn describe(&self) -> String {
        let hanoi::Options { disks, pegs, threads, rounds, .. } = self.options;
        format!(
            "Hanoi: {disks} disks on {pegs} pegs, {rounds} times from end to end, {threads} threads"
        )
    }
}

/// The register-level simulator on the circuit s5378 of ISCAS'89.
#[derive(Debug)]
pub struct Regsim {
    /// The circuit s5378.
    netlist: Netlist,
    /// The program's options.
    options: regsim::Options,
    /// The checksum of the sequential program, which each run must have.
    checksum: u64,
    /// The processors of the machine.
    processors: usize,
}

impl Regsim {
    /// Makes a program that simulates `cycles` cycles.
    pub fn new(place: &Place, cycles: u64) -> Result<Self, Stop> {
        let netlist = Netlist::parse(circuits::S5378.as_bytes())
            .map_err(|error| failed("Regsim", format!("s5378: {error}")))?;
        let options = regsim::Options {
            cycles,
            threads: threads(place.processors),
            buckets: place.buckets,
            seed: place.seed,
            pinned: place.pinned,
            instruction_ns: place.instruction_ns,
        };
        let checksum = sequential::run(&netlist, cycles, place.seed).checksum;
        Ok(Self { netlist, options, checksum, processors: place.processors })
    }
}

impl Program for Regsim {
    fn run<P: Policy + 'static>(
        &self,
        make: &dyn Fn(&str) -> RawPolicyMutex<P>,
    ) -> Result<Duration, Stop> {
        let run = regsim::run_with(&self.netlist, &self.options, make);
        if run.checksum != self.checksum {
            return Err(failed("Regsim", "other outputs than the sequential simulator's"));
        }
        Ok(run.elapsed)
    }

    fn processors(&self) -> usize {
        self.processors.min(self.options.threads)
    }

    fn describe(&self) -> String {
        let regsim::Options { cycles, threads, buckets, .. } = self.options;
        format!(
            "Regsim: {cycles} cycles of s5378, {threads} threads, {buckets} locks for the objects"
        )
    }
}

/// Returns one thread a processor, up to the programs' limit. On one processor it returns two
/// threads, which never wait for a running thread.
fn threads(processors: usize) -> usize {
    processors.clamp(2, MAX_THREADS)
}
