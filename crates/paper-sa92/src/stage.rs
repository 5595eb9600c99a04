//! The place of a run: this computer, or a simulated machine.

use stanchion_simulator::Machine;

use super::setting::{COARSE, Deciding, FINE, Program, Runs, Setting, System};
use super::simulated::COMPILER;
use super::{fibers, real, simulated};
use stanchion_study::context::{Context, Stop};

/// A machine that the program can be measured on.
pub(super) enum Stage<'a> {
    Real,
    Simulated(&'a Machine),
}

impl Stage<'_> {
    pub(super) fn processors(&self, context: &Context) -> usize {
        match self {
            Self::Real => context.processors.len(),
            Self::Simulated(machine) => machine.processors,
        }
    }

    /// Returns the program with a task for each body.
    pub(super) fn fine(&self, context: &Context) -> Program {
        match self {
            Self::Real => real::fine(context),
            Self::Simulated(_) => FINE,
        }
    }

    /// Returns the program with tasks that miss.
    pub(super) fn coarse(&self, context: &Context) -> Program {
        match self {
            Self::Real => real::coarse(context),
            Self::Simulated(_) => COARSE,
        }
    }

    /// Returns the systems that are compared, and on a simulated machine the models of the paper's.
    pub(super) fn systems(&self) -> Vec<System> {
        let mut systems = System::COMPARED.to_vec();
        if matches!(self, Self::Simulated(_)) {
            systems.extend(System::MODELS);
        }
        systems
    }

    /// Returns the two systems of user-level threads that a claim is judged by: on kernel threads,
    /// and on activations. On a simulated machine they are the models of the paper's own threads;
    /// `simulated.rs` says why.
    pub(super) fn judged(&self) -> (System, System) {
        match self {
            Self::Real => (System::User, System::Activations),
            Self::Simulated(_) => (System::UserModel, System::ActivationsModel),
        }
    }

    /// Runs each setting and returns its measurement. All must bring the bodies to the same places.
    pub(super) fn measure(
        &self,
        context: &Context,
        settings: &[Setting],
        deciding: &Deciding<'_>,
    ) -> Result<Runs, Stop> {
        let runs = match self {
            Self::Real => real::run(context, settings, deciding)?,
            Self::Simulated(machine) => Runs {
                measured: simulated::run(context, machine, settings, context.seed)?,
                ranges: Vec::new(),
                repeated: None,
            },
        };
        let checksum = runs.measured.first().map(|one| one.checksum);
        if runs.measured.iter().all(|one| Some(one.checksum) == checksum) {
            return Ok(runs);
        }
        Err(Stop::Failed(
            "two systems of threads brought the bodies to different places".to_owned(),
        ))
    }

    /// Returns the notes on the program and the machine, for the reader of a figure.
    pub(super) fn notes(&self, program: Program, runs: &Runs) -> Vec<String> {
        let Program { bodies, grain, steps, theta, miss, .. } = program;
        let program = format!(
            "The program is the n-body simulation of stanchion-applications: {bodies} bodies, {} times their forces, opening angle {theta}, a task for {grain} of them; 64 bodies to a \
             block of its buffer cache, behind one lock; a miss waits {miss:?} in the kernel.",
            steps + 1
        );
        let machine = match self {
            Self::Real => format!(
                "{} A thread that has begun may migrate to another kernel thread, as in the paper, unless it is said to stay: the program holds nothing that forbids it.",
                real::note(runs.repeated.as_ref())
            ),
            Self::Simulated(machine) => {
                let scheduling = &machine.scheduling;
                let (user, activations) = (fibers::Costs::USER, fibers::Costs::ACTIVATIONS);
                format!(
                    "User-level threads are those of stanchion-activations itself, which the simulated kernel tells of each switch of its kernel threads. What it executes is charged: its \
                     accesses by the machine's memory, the instructions between them by the committed table, {COMPILER} of the machine's for one of ours. Beside them stands a model of \
                     the paper's threads. Its inputs are from the paper's tables: a user-level thread takes {} µs to fork and {} to signal and wait, on activations {} and {}; an upcall \
                     {} µs. The scheduler's own sections take no lock in the model: the paper's are recovered when their holder is preempted. Both systems' kernel threads take {} µs to \
                     make, {} to fall asleep, {} to be woken.",
                    user.fork / 1_000,
                    user.signal_wait / 1_000,
                    activations.fork / 1_000,
                    activations.signal_wait / 1_000,
                    scheduling.upcall.as_nanos() / 1_000,
                    scheduling.spawn.as_nanos() / 1_000,
                    scheduling.park.as_nanos() / 1_000,
                    (scheduling.wake + scheduling.wakeup + scheduling.switch).as_nanos() / 1_000,
                )
            }
        };
        vec![program, machine]
    }
}
