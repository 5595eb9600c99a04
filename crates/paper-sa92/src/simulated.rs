//! The n-body program on the simulated machine, over each of the paper's three systems of threads,
//! and kernel threads with competitive locks.
//!
//! User-level threads are those of `stanchion-activations`, on activations or without. The
//! simulated kernel tells the runtime of each switch of its kernel threads. The runtime's own
//! computation is charged ([`COMPILER`]), its waits in the kernel cost what the machine's
//! description says.
//!
//! Beside them stands a model of the paper's own user-level threads (`fibers.rs`). The costs of
//! their operations are measured in the paper and put in. The claims are judged by the model. They
//! are about what the kernel's interface gains, if a thread of the library costs a tenth of a
//! thread of the kernel, as in the paper. Our runtime is built for kernels of today, with threads
//! that cost more instructions. With one of ours charged as one of the Firefly's processor, it is
//! as dear there as kernel threads (`cargo simulate sa92/table4`). A verdict on its speed-ups would
//! be one on that number, which table 4 has already.
//!
//! The model's verdict is about what follows from its costs: which threads wait for a processor,
//! and which for a miss.

use std::cell::Cell;
use std::rc::Rc;

use lock_api::RawMutex;
use sim_activations::{Arbiter, Runtime};
use sim_applications::CVAX_INSTRUCTION_NS;
use sim_applications::nbody::{
    Cache, Cached, Fork, Options, Sequential, Simulation as Cluster, Threads, Touches, plummer,
};
use sim_competitive::RawPolicyMutex;
use sim_competitive::policy::{Adaptive, AlwaysBlock, AlwaysSpin};
use sim_programs::sa92::{self, OnRuntime, UserLock};
use stanchion_simulator::{Failure, Machine, Simulation, inside};

use super::fibers::{Costs, FiberLock, Fibers, OnFibers};
use super::setting::{Measured, Program, Setting, System};
use stanchion_study::context::{Context, Stop};
use stanchion_study::simulation::cells;
use stanchion_study::simulation::simulation;

/// The most kernel threads at a time, and activations of a run.
const THREADS: usize = 1 << 16;

/// Bytes of a virtual thread's stack.
const STACK: usize = 64 << 10;

/// Instructions of the machine for one of the runtime's, if the machine's description has no
/// factor. It is not fitted. The description has none where its times contain instructions. Those
/// are times of the kernel and of programs, not the runtime's.
pub(super) const COMPILER: f64 = 1.0;

/// Returns the machine that charges the runtime's instructions. Programs declare their own, and are
/// charged no more.
fn with_instructions(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    machine.processor.compiler.get_or_insert(COMPILER);
    machine
}

/// Runs all `settings`, a step of the experiment each.
pub(super) fn run(
    context: &Context,
    machine: &Machine,
    settings: &[Setting],
    seed: u64,
) -> Result<Vec<Measured>, Stop> {
    context.plan(settings.len());
    cells(context, machine, settings, |setting| measure(machine, seed, *setting))
}

fn measure(machine: &Machine, seed: u64, setting: Setting) -> Result<Measured, Failure> {
    let mut machine = match setting.system {
        System::User | System::Activations | System::Staying => with_instructions(machine),
        _ => machine.clone(),
    };
    machine.processors = setting.processors;
    let scale = machine.scale;
    let simulation = simulation(&machine, seed).stack_size(STACK).threads(THREADS);
    let run = simulation.run(move || {
        let mut arbiters = arbiters(setting);
        let copy = |_| Copy::start(setting, scale, arbiters.pop());
        let copies: Vec<Copy> = (0..setting.copies).map(copy).collect();
        let results: Vec<Measured> = copies.iter().map(Copy::wait).collect();
        Measured::slowest(results)
    })?;
    Ok(run.result)
}

/// Returns arbiters that divide the processors between two copies on activations, as the paper's
/// kernel does.
fn arbiters(setting: Setting) -> Vec<Arbiter> {
    match setting.system {
        System::Activations | System::Staying if setting.copies == 2 => {
            Arbiter::pair(setting.processors).into()
        }
        _ => Vec::new(),
    }
}

/// Measures Null Fork and Signal-Wait of the runtime's threads, in nanoseconds of the machine. The
/// runtime has one processor. The kernel thread that waits for it has another, and does not preempt
/// it.
pub(super) fn operations(machine: &Machine, activations: bool) -> Result<[f64; 2], Failure> {
    const TIMES: u32 = 200;
    let mut machine = with_instructions(machine);
    machine.processors = 2;
    let scale = machine.scale;
    let run = Simulation::new(machine).stack_size(STACK).run(move || {
        let runtime = sa92::runtime(activations, 1).expect("simulated threads are free");
        // SAFETY: it spawns parts of the two operations only.
        let how = unsafe { OnRuntime::migrating() };
        let found =
            [sa92::user_fork(&runtime, how, TIMES), sa92::user_signal(&runtime, how, TIMES)];
        found.map(|nanos| nanos * scale)
    })?;
    Ok(run.result)
}

/// A running program. It holds the result when the program has ended.
struct Copy(Rc<Cell<Option<Measured>>>);

impl Copy {
    fn start(setting: Setting, scale: f64, arbiter: Option<Arbiter>) -> Self {
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
            System::User | System::Activations | System::Staying => spawn(move || {
                let fork = match setting.system {
                    System::Staying => OnRuntime::staying(),
                    // SAFETY: it spawns parts of the n-body program only.
                    _ => unsafe { OnRuntime::migrating() },
                };
                let runtime = runtime(setting, arbiter);
                end(fork.run(&runtime, || program::<UserLock, _>(&fork, setting, scale)));
            }),
            System::UserModel => {
                let run = match setting.program.spinning_sections {
                    0 => program::<FiberLock, OnFibers>,
                    _ => program::<RawPolicyMutex<AlwaysSpin>, OnFibers>,
                };
                let main = move || end(run(&OnFibers, setting, scale));
                let costs = Costs { locked: setting.program.locked_percent, ..Costs::USER };
                Fibers::new(costs).over_threads(processors, main);
            }
            System::ActivationsModel => {
                let main = move || end(program::<FiberLock, _>(&OnFibers, setting, scale));
                Fibers::new(Costs::ACTIVATIONS).on_activations(processors, main);
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

/// Makes the runtime of a copy.
fn runtime(setting: Setting, arbiter: Option<Arbiter>) -> Runtime {
    let built = match arbiter {
        Some(arbiter) => sa92::divided_runtime(arbiter, setting.processors),
        None => sa92::runtime(setting.system != System::User, setting.processors),
    };
    built.expect("simulated threads are free")
}

fn spawn(body: impl FnOnce() + 'static) {
    inside::spawn(None, None, Box::new(body));
}

/// Runs the program from one thread of any kind.
fn program<L: RawMutex + Send + Sync, F: Fork>(fork: &F, setting: Setting, scale: f64) -> Measured {
    let began = inside::time();
    let Program { bodies, grain, theta, miss, spinning_sections, .. } = setting.program;
    let options = Options { theta, grain, ..Options::default() };
    let (cluster, touches) = if setting.system == System::Sequential {
        (steps(fork, bodies, options, setting), Touches::default())
    } else {
        // The code's clock differs from the machine's.
        let nanos = (miss.as_nanos() as f64 / scale) as u64;
        let cache = Cache::<L, _>::new(bodies, setting.memory, |_| inside::sleep(nanos))
            .instruction_ns(CVAX_INSTRUCTION_NS * spinning_sections.max(1));
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
        for system in System::COMPARED.into_iter().chain(System::MODELS) {
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
        for system in System::COMPARED.into_iter().chain(System::MODELS) {
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
            Fibers::new(Costs::USER).over_threads(2, main);
            inside::sleep(1_000_000_000);
            caught.get()
        });
        assert!(run.unwrap().result);
    }
}
