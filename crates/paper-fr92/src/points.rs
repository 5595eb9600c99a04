//! The cases and their points. A case is a program of the paper's, with a way of waiting and a
//! choice of the threads that are put on the processors together.

use std::time::Duration;

use stanchion_formulas::gang::{Iteration, System};
pub(crate) use stanchion_study::settings::gangs::{Measured, Method, Others, Setting};

/// The model's parameters of a machine, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The number of processors, which is the number of threads of a gang.
    pub(crate) processors: usize,
    /// The length of a gang's turn.
    pub(crate) quantum: Duration,
    /// The time of a switch: measured here, or in the machine's description.
    pub(crate) switch: f64,
    /// The time of a switch without gangs, and what is added to it once a round.
    pub(crate) ungoverned: (f64, f64),
    /// The switches that a yield is charged. More than one stand for yields that are not made.
    pub(crate) charged: f64,
    /// The time of a unit of GRAIN.
    pub(crate) unit: f64,
    /// The time of an iteration without computing, by threads that wait busily and only for one
    /// another.
    pub(crate) barrier: f64,
    /// The part of it that each thread computes, because the paper's barrier took longer than ours.
    pub(crate) rest: f64,
    /// The same as `barrier` for gangs of two.
    pub(crate) pair: f64,
    /// The time that a gang's members add to that: they look whether their turn is over.
    pub(crate) look: f64,
}

impl Place {
    /// Returns an iteration by equation 14, for this machine and the members of `case`.
    pub(crate) fn iteration(&self, case: &Case) -> Iteration {
        let n = case.members as f64;
        let work =
            Iteration::uniform(case.grain * self.unit, case.var * self.unit, case.members as u32);
        let barrier = if case.members == self.processors { self.barrier } else { self.pair };
        work.and_then(|work| {
            let processing = barrier + work.processing() + case.slow / n;
            Iteration::new(processing, work.waiting() + case.slow * (n - 1.0) / n)
        })
        .expect("grains are not negative")
    }

    /// Returns the least time that each member of `case` computes in an iteration.
    pub(crate) fn least(&self, case: &Case) -> f64 {
        let rest = if case.members == self.processors { self.rest } else { 0.0 };
        case.grain * self.unit + rest
    }

    fn system(&self, case: &Case) -> System {
        let gangs = matches!(case.method, Method::Gang | Method::GangTwoPhase);
        let switch = if gangs { self.switch } else { self.switch_of(case) };
        let quantum = self.quantum.as_secs_f64() * 1e3;
        System::new(quantum, switch, case.load as u32, case.members as u32)
            .expect("a place has a quantum, programs and processors")
    }

    /// Returns the time of a switch without gangs.
    pub(crate) fn switch_of(&self, case: &Case) -> f64 {
        let (each, round) = self.ungoverned;
        self.charged * case.switch.unwrap_or(each + round / case.load as f64)
    }

    /// Returns the model's time for the method of `case`, or nothing if the model has none.
    pub(crate) fn predicted(&self, case: &Case, measured: Measured) -> Option<f64> {
        let iteration = self.iteration(case);
        let system = self.system(case);
        match case.method {
            Method::Gang | Method::GangTwoPhase => {
                let looks = Iteration::new(iteration.processing() + self.look, iteration.waiting());
                looks.ok().map(|iteration| system.gang(iteration))
            }
            Method::Busy => Some(system.uncoordinated(iteration)),
            Method::Yielding if case.others == Others::Computing => {
                system.blocking_among_busy(iteration, measured.alpha).ok()
            }
            Method::Yielding => system.blocking(iteration, measured.alpha).ok(),
            Method::Preferred | Method::TwoPhase => None,
        }
    }
}

/// One case to be measured, in the paper's units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// The way in which threads wait and are scheduled.
    pub(crate) method: Method,
    /// The number of gangs that share the processors.
    pub(crate) load: usize,
    /// The number of threads of a gang.
    pub(crate) members: usize,
    /// The computation between two barriers, in units of GRAIN.
    pub(crate) grain: f64,
    /// The variation of the computation, in units of GRAIN.
    pub(crate) var: f64,
    /// Additional computation of one member in each iteration, in milliseconds.
    pub(crate) slow: f64,
    /// The time of a switch without gangs, if it is not that of the machine's own library.
    pub(crate) switch: Option<f64>,
    /// The activity of the programs beside the first.
    pub(crate) others: Others,
}

impl Case {
    pub(crate) fn new(method: Method, load: usize, members: usize, grain: f64, var: f64) -> Self {
        Self { method, load, members, grain, var, slow: 0.0, switch: None, others: Others::Alike }
    }
}

/// The measurement of a case, and the model's prediction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// The parameters of the measurement.
    pub(crate) case: Case,
    /// The results: of several patterns or rounds one figure.
    pub(crate) measured: Measured,
    /// The least and the greatest time of the rounds on this computer.
    pub(crate) range: Option<(f64, f64)>,
    /// t_p + t_w by equation 14, with this machine's barrier.
    pub(crate) full: f64,
    /// The time of an iteration by the model, if the model has one for the method.
    pub(crate) model: Option<f64>,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Points of `method` for gangs of ten, from `(time, t_p + t_w)`; load 1, 2, ….
    pub(in super::super) fn points(method: Method, times: &[(f64, f64)]) -> Vec<Point> {
        let point = |(index, &(time, full)): (usize, &(f64, f64))| Point {
            case: Case::new(method, index + 1, 10, 1.0, 0.0),
            measured: Measured { time, iterations: 100, alpha: 1.0 },
            range: None,
            full,
            model: None,
        };
        times.iter().enumerate().map(point).collect()
    }

    /// Equation 14 with the paper's own barrier.
    #[test]
    fn a_place_computes_as_equation_14() {
        let place = Place {
            processors: 10,
            quantum: Duration::from_millis(50),
            switch: 0.2,
            ungoverned: (0.07, 0.14),
            charged: 1.0,
            unit: 0.00141,
            barrier: 0.137,
            rest: 0.1,
            pair: 0.02,
            look: 0.0,
        };
        let case = Case::new(Method::Gang, 3, 10, 100.0, 100.0);
        let pair = Case::new(Method::Gang, 3, 2, 100.0, 100.0);
        assert!((place.least(&case) - 0.241).abs() < 1e-12, "a tenth is of the barrier");
        assert!((place.least(&pair) - 0.141).abs() < 1e-12);
        let paper = stanchion_formulas::gang::makbilan::iteration(100.0, 100.0).unwrap();
        assert_eq!(place.iteration(&case), paper);
        // One slow member of ten: a tenth of it is computed on average, nine tenths are waited.
        let slow = place.iteration(&Case { slow: 1.0, ..Case::new(Method::Gang, 3, 10, 0.0, 0.0) });
        assert!((slow.processing() - 0.237).abs() < 1e-12 && (slow.waiting() - 0.9).abs() < 1e-12);
    }
}
