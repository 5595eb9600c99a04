//! The n-body program on the simulated machine, over each of the paper's three systems of threads,
//! and kernel threads with competitive locks.
//!
//! The costs of operations on user-level threads are measured in the paper and put in here
//! ([`costs`]). The costs of kernel threads, their locks and the upcalls are in the machine's
//! description. The verdict is about what follows from those costs: which threads wait for a
//! processor, and which for a miss.

use std::cell::Cell;
use std::rc::Rc;

use lock_api::RawMutex;
use sim_applications::CVAX_INSTRUCTION_NS;
use sim_applications::nbody::{
    Cache, Cached, Fork, Options, Sequential, Simulation as Cluster, Threads, Touches, plummer,
};
use sim_competitive::RawPolicyMutex;
use sim_competitive::policy::{Adaptive, AlwaysBlock};
use stanchion_simulator::{Failure, Machine, inside};

use super::fibers::{Costs, FiberLock, Fibers, OnFibers};
use super::setting::{Measured, Program, Setting, System};
use stanchion_study::context::{Context, Stop};
use stanchion_study::simulation::cells;
use stanchion_study::simulation::simulation;

/// The most kernel threads at a time, and activations of a run.
const THREADS: usize = 1 << 16;

/// Bytes of a virtual thread's stack.
const STACK: usize = 64 << 10;

/// Returns the costs of operations on the paper's machine, by its table IV, over kernel threads or
/// on activations.
pub(super) fn costs(system: System) -> Costs {
    let (fork, signal_wait) = match system {
        System::Activations => (37_000, 42_000),
        _ => (34_000, 37_000),
    };
    // Estimated: a test-and-set, a store and the calls around them. "For a short period", the paper
    // says of the other: it is a twentieth of a quantum.
    Costs { fork, signal_wait, lock: 10_000, patience: 5_000_000 }
}

/// Runs all `settings`, a step of the experiment each.
pub(super) fn run(
    context: &Context,
    machine: &Machine,
    settings: &[Setting],
) -> Result<Vec<Measured>, Stop> {
    context.plan(settings.len());
    cells(context, machine, settings, |setting| measure(machine, context.seed, *setting))
}

fn measure(machine: &Machine, seed: u64, setting: Setting) -> Result<Measured, Failure> {
    let mut machine = machine.clone();
    machine.processors = setting.processors;
    let scale = machine.scale;
    let simulation = simulation(&machine, seed).stack_size(STACK).threads(THREADS);
    let run = simulation.run(move || {
        let copies: Vec<Copy> = (0..setting.copies).map(|_| Copy::start(setting, scale)).collect();
        let results: Vec<Measured> = copies.iter().map(Copy::wait).collect();
        Measured::slowest(results)
    })?;
    Ok(run.result)
}

/// A running program. It holds the result when the program has ended.
struct Copy(Rc<Cell<Option<Measured>>>);

impl Copy {
    fn start(setting: Setting, scale: f64) -> Self {
        let result = Rc::new(Cell::new(None));
        let own = Rc::clone(&result);
        let end = move |measured| {
            own.set(Some(measured));
            inside::wake(Rc::as_ptr(&own).cast(), 1);
        };
        let processors = setting.processors;
        match setting.system {
            System::Sequential => {
                spawn(move || end(program::<FiberLock, _>(&Sequential, setting, scale)));
            }
            System::Kernel => spawn(move || {
                let threads = Threads::new(THREADS);
                end(program::<RawPolicyMutex<AlwaysBlock>, _>(&threads, setting, scale));
            }),
            System::Competitive => spawn(move || {
                let threads = Threads::new(THREADS);
                end(program::<RawPolicyMutex<Adaptive>, _>(&threads, setting, scale));
            }),
            System::User => {
                let main = move || end(program::<FiberLock, _>(&OnFibers, setting, scale));
                Fibers::new(costs(setting.system)).over_threads(processors, main);
            }
            // Simulated threads are coroutines of this crate, and never stay.
            System::Activations | System::Staying => {
                let main = move || end(program::<FiberLock, _>(&OnFibers, setting, scale));
                Fibers::new(costs(setting.system)).on_activations(processors, main);
            }
        }
        Self(result)
    }

    fn wait(&self) -> Measured {
        loop {
            if let Some(result) = self.0.get() {
                return result;
            }
            let word = Rc::as_ptr(&self.0).cast();
            inside::park(word, || self.0.get().is_some(), u64::MAX);
        }
    }
}

fn spawn(body: impl FnOnce() + 'static) {
    inside::spawn(None, None, Box::new(body));
}

/// Runs the program from one thread of any kind.
fn program<L: RawMutex + Send + Sync, F: Fork>(fork: &F, setting: Setting, scale: f64) -> Measured {
    let began = inside::time();
    let Program { bodies, grain, theta, miss, .. } = setting.program;
    let options = Options { theta, grain, ..Options::default() };
    let (cluster, touches) = if setting.system == System::Sequential {
        (steps(fork, bodies, options, setting), Touches::default())
    } else {
        // The code's clock differs from the machine's.
        let nanos = (miss.as_nanos() as f64 / scale) as u64;
        let cache = Cache::<L, _>::new(bodies, setting.memory, |_| inside::sleep(nanos))
            .instruction_ns(CVAX_INSTRUCTION_NS);
        (steps(&Cached { fork, cache: &cache }, bodies, options, setting), cache.touches())
    };
    let seconds = inside::time().since(began).as_secs();
    Measured { seconds, checksum: cluster.checksum(), misses: touches.misses }
}

fn steps<F: Fork>(fork: &F, bodies: usize, options: Options, setting: Setting) -> Cluster {
    let mut cluster = Cluster::new(plummer(bodies, 1), options, fork).expect("good options");
    (0..setting.program.steps).for_each(|_| cluster.step(fork));
    cluster
}

#[cfg(test)]
mod tests {
    use stanchion_simulator::machines;

    use super::*;

    fn small(system: System, processors: usize, memory: u32, copies: usize) -> Setting {
        let program = Program { bodies: 200, grain: 4, steps: 1, ..super::super::setting::FINE };
        Setting { system, processors, memory, copies, program }
    }

    fn once(setting: Setting) -> Measured {
        measure(&machines::firefly(), 1, setting).unwrap()
    }

    #[test]
    fn every_system_comes_to_the_same_places_in_the_same_time_every_time() {
        let expected = once(small(System::Sequential, 1, 100, 1)).checksum;
        for system in System::COMPARED {
            for (memory, copies) in [(100, 1), (30, 1), (100, 2)] {
                let setting = small(system, 3, memory, copies);
                let measured = once(setting);
                assert_eq!(measured.checksum, expected, "{setting:?}");
                assert_eq!(measured, once(setting), "{setting:?}");
                assert_eq!(measured.misses > 0, memory < 100, "{setting:?}");
            }
        }
    }

    /// Twice as long alone as with two processors, less what is done by one.
    #[test]
    fn each_system_uses_its_processors() {
        for system in System::COMPARED {
            let time = |processors| once(small(system, processors, 100, 1)).seconds;
            assert!(time(1) > 1.7 * time(2), "{system:?}");
        }
    }

    /// One processor: a thread that misses takes it along, unless the kernel says so.
    #[test]
    fn activations_go_on_while_a_thread_misses() {
        let time = |system| once(small(system, 1, 50, 1)).seconds;
        assert!(time(System::Activations) < 0.7 * time(System::User));
    }

    #[test]
    fn a_panic_in_a_fiber_is_the_joiners() {
        let machine = machines::firefly();
        let run = simulation(&machine, 1).stack_size(STACK).run(|| {
            let caught = Rc::new(Cell::new(false));
            let own = Rc::clone(&caught);
            let main = move || {
                let join = || OnFibers.join(|| (), || panic!("of a half"));
                let panicked = std::panic::catch_unwind(join);
                own.set(panicked.is_err());
            };
            Fibers::new(costs(System::User)).over_threads(2, main);
            inside::sleep(1_000_000_000);
            caught.get()
        });
        assert!(run.unwrap().result);
    }
}
