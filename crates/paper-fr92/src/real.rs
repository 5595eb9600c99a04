//! The methods on this computer.
//!
//! A thread is a thread of the system, kept on its processor. Without gangs the system's own
//! scheduler takes turns, and chooses the quantum. A unit of GRAIN is a hundredth of the
//! Makbilan's, because switches are about a hundred times as fast here.
//!
//! Gangs of an ordinary process are on the processors together only if no other program is. If
//! other programs run too, nothing is judged.

use std::hint::black_box;
use std::time::{Duration, Instant};

use stanchion_formulas::gang::makbilan;

use super::points::{Measured, Method, Others, Place, Setting};
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::processor_time;
use stanchion_study_programs::fr92;

/// The gangs' quantum.
const QUANTUM: Duration = Duration::from_millis(10);

/// The first phase of two-phase waiting: about as long as a switch.
const FIRST_PHASE_NS: u64 = 2_000;

/// The time of a unit of GRAIN, in milliseconds.
const UNIT: f64 = makbilan::UNIT / 100.0;

/// An empty loop that computes for a given time. It counts its turns and reads no clock: a thread
/// that has lost its processor has not computed meanwhile.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The measured speed of the loop.
    turns_per_nano: f64,
}

impl Pace {
    fn measured() -> Self {
        const TURNS: u64 = 200_000;
        let once = || {
            let begin = Instant::now();
            turn(TURNS);
            begin.elapsed().as_nanos() as f64
        };
        // The fastest was disturbed least.
        let fastest = (0..20).map(|_| once()).fold(f64::INFINITY, f64::min);
        Self { turns_per_nano: TURNS as f64 / fastest }
    }

    fn compute(self, nanos: u64) {
        turn((nanos as f64 * self.turns_per_nano) as u64);
    }
}

fn turn(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// This computer, for the programs.
pub(super) struct Here {
    /// The loop by which threads compute.
    pace: Pace,
    /// The processors that the study may use, by their numbers.
    processors: Vec<usize>,
    /// The model's parameters.
    pub(super) place: Place,
    /// The share of the processors' time that this program had when it wanted all of it.
    pub(super) share: f64,
}

impl Here {
    /// Measures the model's parameters.
    pub(super) fn new(context: &Context) -> Result<Self, Stop> {
        let processors = context.processors.clone();
        let switch = switch(processors[0])?;
        let place = Place {
            processors: processors.len(),
            quantum: QUANTUM,
            switch,
            ungoverned: (switch, 0.0),
            charged: 1.0,
            unit: UNIT,
            barrier: 0.0,
            rest: 0.0,
            pair: 0.0,
            look: 0.0,
        };
        let pace = Pace::measured();
        let share = share(pace, &processors);
        let mut here = Self { pace, processors, place, share };
        let empty = Setting {
            method: Method::Busy,
            load: 1,
            members: here.place.processors,
            least: 0,
            spread: 0,
            slow: 0,
            others: Others::Alike,
            quantum: QUANTUM,
            switch,
            rounds: 3,
            settle: 1,
            seed: context.seed,
        };
        // The fastest of several was disturbed least.
        let time = |method, members| -> Result<f64, Stop> {
            let setting = Setting { method, members, ..empty.clone() };
            let tries: Result<Vec<Measured>, Stop> =
                (0..7).map(|_| here.measure(&setting)).collect();
            Ok(tries?.iter().map(|one| one.time).fold(f64::INFINITY, f64::min))
        };
        let all = here.place.processors;
        let (barrier, pair) = (time(Method::Busy, all)?, time(Method::Busy, 2.min(all))?);
        let gang = time(Method::Gang, all)?;
        here.place.look = (gang - barrier).max(0.0);
        (here.place.barrier, here.place.pair) = (barrier, pair);
        Ok(here)
    }

    /// Measures one setting, once.
    pub(super) fn measure(&self, setting: &Setting) -> Result<Measured, Stop> {
        let pace = self.pace;
        fr92::measure(setting, &self.processors, FIRST_PHASE_NS, move |nanos| pace.compute(nanos))
            .map_err(|wrong| Stop::Failed(format!("{}: {wrong}", setting.method.name())))
    }
}

/// Computes on all processors for a while. Returns the part of their time that this program had.
fn share(pace: Pace, processors: &[usize]) -> f64 {
    let length = Duration::from_millis(60);
    let (began, had) = (Instant::now(), processor_time());
    std::thread::scope(|scope| {
        for &processor in processors {
            scope.spawn(move || {
                let _kept = stanchion_machine::topology::pin(processor);
                while began.elapsed() < length {
                    pace.compute(100_000);
                }
            });
        }
    });
    let had = processor_time().saturating_sub(had).as_secs_f64();
    (had / (began.elapsed().as_secs_f64() * processors.len() as f64)).min(1.0)
}

/// Returns the milliseconds of a switch between two threads that take turns on `processor`, by
/// yielding.
pub(super) fn switch(processor: usize) -> Result<f64, Stop> {
    const TIMES: u32 = 20_000;
    let one = move || {
        let _kept = stanchion_machine::topology::pin(processor);
        let began = Instant::now();
        (0..TIMES).for_each(|_| std::thread::yield_now());
        began.elapsed().as_secs_f64() * 1e3 / f64::from(TIMES)
    };
    let other = std::thread::spawn(one);
    let mine = std::thread::spawn(one).join();
    // Both run for most of the time. A turn is two switches for each of the two.
    match (mine, other.join()) {
        (Ok(mine), Ok(other)) => Ok(mine.max(other) / 2.0),
        _ => Err(Stop::Failed("a thread that only yields panicked".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each method comes to its end with two programs of one thread, so with one processor too.
    #[test]
    fn every_method_ends() {
        let first = stanchion_machine::topology::processors()[0];
        for method in [
            Method::Gang,
            Method::Busy,
            Method::Yielding,
            Method::Preferred,
            Method::TwoPhase,
            Method::GangTwoPhase,
        ] {
            let setting = Setting {
                method,
                load: 2,
                members: 1,
                least: 1_000,
                spread: 1_000,
                slow: 0,
                others: Others::Alike,
                quantum: Duration::from_millis(1),
                switch: 0.0,
                rounds: 2,
                settle: 1,
                seed: 1,
            };
            let pace = Pace::measured();
            let measured =
                fr92::measure(&setting, &[first], FIRST_PHASE_NS, move |nanos| pace.compute(nanos));
            assert!(measured.unwrap().time > 0.0, "{}", method.name());
        }
    }
}
