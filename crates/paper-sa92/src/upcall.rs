//! Section 5.2: Signal-Wait that goes through the kernel, as when a thread waits for input.
//!
//! On this computer two user-level threads on one processor signal each other through pipes, and do
//! not tell the runtime. Beside them kernel threads do the same, and other kernel threads signal as
//! they usually do. On the simulated machine threads sleep in the kernel and wake each other there.
//! There is an upcall when a thread blocks and another when one unblocks.
//!
//! The break-even share is the part of a program's operations that may go through the kernel before
//! kernel threads are as good. If a user-level operation costs U, one through the kernel V, and a
//! kernel thread's T, the share is (T - U) / (V - U).
//!
//! Rule of the verdict on this computer: *holds* if a signal through the kernel takes user-level
//! threads no longer than kernel threads' Signal-Wait; else *differs*. *not judged* if the ratio of
//! the two is not known precisely enough ([`Precision`]).
//!
//! On the simulated Firefly it *holds* if the signal takes 3 to 8 times as long as that. The paper
//! measured 2.4 ms there, "a factor of five worse than Topaz threads" (section 5.2), which is 5.4
//! times the 441 µs of its table I. An upcall and kernel threads' Signal-Wait are inputs. What is
//! judged is how many upcalls a signal takes, and how much of the kernel's own way comes on top. On
//! another simulated machine it is not judged.

use std::cell::Cell;
use std::rc::Rc;

use stanchion_simulator::{Failure, Machine, Simulation, inside, machines};

use super::fibers::{self, Fibers};
use super::{operations, real};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::{Precision, Repeated, median, rounds_until};
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::simulation::failed;
use stanchion_study::units::{percent, significant};
use stanchion_study_programs::sa92::{self, OnRuntime};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "sa92/upcall",
    paper: Paper::Sa92,
    title: "Signal-Wait forced through the kernel",
    claim: "2.4 ms on the Firefly, five times kernel threads; on this computer ours stays below kernel-thread Signal-Wait.",
    bodies: Bodies::Machines {
        real: Body::Run(here),
        simulated: Body::Run(Simulated::on(&["firefly"], there)),
    },
};

/// Signal-Waits, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// The time of user-level threads, among themselves.
    user: f64,
    /// The time of user-level threads, through the kernel.
    through: f64,
    /// The time of kernel threads.
    kernel: f64,
}

impl Costs {
    /// Returns the part of the operations that may go through the kernel.
    fn break_even(self) -> f64 {
        if self.through <= self.kernel {
            return 1.0;
        }
        ((self.kernel - self.user) / (self.through - self.user)).max(0.0)
    }

    fn verdict(self, holds: bool) -> Verdict {
        Verdict::when(
            holds,
            format!(
                "a signal through the kernel takes {} times as long as kernel threads' own; user-level threads win while at most {} of the operations go there",
                significant(self.through / self.kernel),
                percent(self.break_even())
            ),
        )
    }
}

fn here(context: &Context) -> Result<Outcome, Stop> {
    let first = context.processors[..1].to_vec();
    let (costs, pipes, repeated) = std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            real::keep_to(&first)?;
            measure(context)
        });
        measured.join().unwrap_or_else(|_| Err(Stop::Failed("a signal panicked".to_owned())))
    })?;
    let mut outcome = outcome(costs, costs.verdict(costs.through <= costs.kernel));
    outcome.verdict = repeated.judge(outcome.verdict);
    let same =
        Comparison::new("the same through pipes, kernel threads", "not tried", micros(pipes));
    outcome.comparisons.push(same);
    outcome.notes.push(
        "One processor. Through the kernel means that each thread reads from an empty pipe, which the other writes to.".to_owned(),
    );
    outcome.notes.push(real::note(Some(&repeated)));
    Ok(outcome)
}

/// Measures the costs, and the cost of pipes for kernel threads.
fn measure(context: &Context) -> Result<(Costs, f64, Repeated), Stop> {
    let runtime = real::runtime(true, 1)?;
    let times = context.pick(500, 5_000);
    let (through, kernel) = (1, 2);
    let (seen, repeated) = rounds_until(
        context,
        4,
        Precision::of(EXPERIMENT.id, context),
        |signal, _| match signal {
            0 => Ok(sa92::user_signal(&runtime, OnRuntime::staying(), 10 * times)),
            1 => operations::user_pipes(&runtime, times),
            2 => Ok(operations::kernel_signal(times)),
            _ => operations::kernel_pipes(times),
        },
        |signal| [through, kernel].contains(&signal),
        |nanos| vec![nanos[0] / nanos[1]],
    )?;
    let middle = |signal: usize| median(seen[signal].clone());
    let costs = Costs { user: middle(0), through: middle(through), kernel: middle(kernel) };
    Ok((costs, middle(3), repeated))
}

/// Turns of two threads on the simulated machine.
const TURNS: u64 = 20;

fn there(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    context.plan(2);
    let [kernel, through] = through(machine)?;
    let user = fibers::Costs::ACTIVATIONS.signal_wait as f64;
    let costs = Costs { user, through, kernel };
    let mut outcome = outcome(costs, on_firefly(costs));
    if machine.name != machines::firefly().name {
        let told = outcome.verdict.because().to_owned();
        outcome.verdict =
            Verdict::NotJudged(format!("the paper's factor is the Firefly's. {told}"));
    }
    outcome.notes.push(format!(
        "What an upcall costs is an input ({} µs, half of what the paper measured for this experiment), as are 42 µs for a signal among user-level threads, and kernel threads' Signal-Wait \
         (441 µs on the Firefly: `park`, a switch and `wake` of the machine's description). What follows is how many upcalls a signal takes, the kernel's own way beside them, and the \
         break-even share.",
        machine.scheduling.upcall.as_nanos() / 1_000
    ));
    Ok(outcome)
}

/// Times of kernel threads' Signal-Wait that a signal through the kernel takes on the Firefly.
const TIMES: core::ops::RangeInclusive<f64> = 3.0..=8.0;

/// Judges the costs on the simulated Firefly.
fn on_firefly(costs: Costs) -> Verdict {
    costs.verdict(TIMES.contains(&(costs.through / costs.kernel)))
}

/// Measures Signal-Wait of kernel threads, and of user-level threads on activations that wait in
/// the kernel.
pub(super) fn through(machine: &Machine) -> Result<[f64; 2], Stop> {
    let both =
        || -> Result<[f64; 2], Failure> { Ok([turns(machine, false)?, turns(machine, true)?]) };
    both().map_err(|failure| failed(machine, &failure))
}

/// The shared state of a game of two threads that take turns.
#[derive(Default)]
struct Game {
    /// The number of the current turn, from 0.
    turn: Cell<u64>,
    /// The virtual time of the first turn, in nanoseconds.
    began: Cell<u64>,
    /// The virtual time of the latest turn, in nanoseconds.
    ended: Cell<u64>,
    /// The number of players that have left.
    left: Cell<usize>,
}

impl Game {
    /// Plays every second turn, from turn `first` on: one thread the even turns, the other the odd.
    fn play(&self, first: u64) {
        let word = (&raw const self.turn).cast();
        for mine in (first..2 * TURNS).step_by(2) {
            while self.turn.get() != mine {
                inside::park(word, || self.turn.get() == mine, u64::MAX);
            }
            if mine == 0 {
                self.began.set(inside::time().as_nanos());
            }
            self.ended.set(inside::time().as_nanos());
            self.turn.set(mine + 1);
            inside::wake(word, 1);
        }
        self.left.set(self.left.get() + 1);
        inside::wake((&raw const self.left).cast(), 1);
    }

    /// Waits until both have left.
    fn wait(&self) {
        while self.left.get() < 2 {
            inside::park((&raw const self.left).cast(), || self.left.get() == 2, u64::MAX);
        }
    }

    fn nanos(&self) -> f64 {
        (self.ended.get() - self.began.get()) as f64 / (2 * TURNS - 1) as f64
    }
}

/// Measures a turn of two threads that sleep in the kernel and wake each other: kernel threads, or
/// user-level threads on activations.
fn turns(machine: &Machine, activations: bool) -> Result<f64, Failure> {
    let mut machine = machine.clone();
    machine.processors = 1;
    let run = Simulation::new(machine).run(move || {
        let game = Rc::new(Game::default());
        let player = |first| {
            let game = Rc::clone(&game);
            move || game.play(first)
        };
        let (first, second) = (player(0), player(1));
        if activations {
            let fibers = Fibers::new(fibers::Costs::ACTIVATIONS);
            fibers.on_activations(1, move || super::fibers::both(first, second));
        } else {
            inside::spawn(None, None, Box::new(first));
            inside::spawn(None, None, Box::new(second));
        }
        game.wait();
        game.nanos()
    })?;
    Ok(run.result)
}

fn micros(nanos: f64) -> String {
    format!("{} µs", significant(nanos / 1e3))
}

fn outcome(costs: Costs, verdict: Verdict) -> Outcome {
    Outcome {
        comparisons: vec![
            Comparison::new(
                "Signal-Wait through the kernel, user threads on activations",
                "2,400 µs",
                micros(costs.through),
            ),
            Comparison::new("Signal-Wait of kernel threads", "441 µs", micros(costs.kernel)),
            Comparison::new(
                "Signal-Wait among user threads on activations",
                "42 µs",
                micros(costs.user),
            ),
            Comparison::new(
                "break-even share of operations through the kernel",
                percent((441.0 - 42.0) / (2_400.0 - 42.0)),
                percent(costs.break_even()),
            ),
        ],
        ..Outcome::new(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_break_even_share_is_where_both_cost_the_same() {
        let paper = Costs { user: 42.0, through: 2_400.0, kernel: 441.0 };
        let share = paper.break_even();
        assert!((share * paper.through + (1.0 - share) * paper.user - paper.kernel).abs() < 1e-9);
        let ours = Costs { user: 0.1, through: 3.0, kernel: 4.0 };
        assert_eq!(ours.break_even(), 1.0);
        assert_eq!(Costs { user: 5.0, through: 6.0, kernel: 4.0 }.break_even(), 0.0);
    }

    #[test]
    fn on_the_firefly_the_factor_is_the_papers() {
        let judged = |through| on_firefly(Costs { user: 42.0, through, kernel: 441.0 }).name();
        assert_eq!([1_200.0, 2_400.0, 3_600.0].map(judged), ["differs", "holds", "differs"]);
    }

    /// The description has half of it for an upcall, so this says that there are two of them.
    #[test]
    fn a_signal_through_the_kernel_takes_two_upcalls() {
        let machine = machines::firefly();
        let through = turns(&machine, true).unwrap();
        assert!((2_400_000.0..3_200_000.0).contains(&through), "{through}");
        let kernel = turns(&machine, false).unwrap();
        // Table I.
        assert!((kernel / 441_000.0 - 1.0).abs() < 0.01, "{kernel}");
    }
}
