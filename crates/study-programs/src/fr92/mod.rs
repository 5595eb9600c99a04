//! Feitelson and Rudolph 1992: the paper's three methods, and methods between them; and the
//! overheads of gangs ([`overheads`]).

pub mod overheads;

use std::sync::Arc;
use std::time::Duration;

use stanchion_applications::iterations::{Grain, Lap, Team, Window, compute_bound};
use stanchion_gang::barrier::{Barrier, BitMask, TwoPhase, Yielding};
use stanchion_gang::{Ended, GangExecutor, Member, WrongSize};
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::topology::CachePadded;
use stanchion_machine::wait::{Spin, WaitPolicy};
use stanchion_machine::{thread, topology};
use stanchion_study::settings::gangs::{Measured, Method, Others, Setting};

/// A function that computes for a number of nanoseconds.
pub trait Compute: Fn(u64) + Clone + Send + Sync + 'static {}
impl<F: Fn(u64) + Clone + Send + Sync + 'static> Compute for F {}

/// The time for which a thread that only computes does so before it checks whether to give way.
const TICK_NS: u64 = 100_000;

/// The counts of the measured programs.
struct Harvest {
    /// The lap of the first member of each program.
    laps: Vec<Lap>,
    /// The yields of all members together.
    yields: u64,
}

/// Measures `setting` with its threads on `processors`, with one thread of each program on each
/// processor. If waiting has two phases, the first takes `first_phase_ns`.
pub fn measure(
    setting: &Setting,
    processors: &[usize],
    first_phase_ns: u64,
    compute: impl Compute,
) -> Result<Measured, String> {
    let programs = match setting.others {
        Others::Alike => setting.load,
        Others::Computing => 1,
    };
    // The other programs of a computing load run as plain threads, without gangs.
    let window = Arc::new(Window::new(
        setting.load * setting.members,
        setting.quantum + setting.settle * setting.round(),
        setting.round() * setting.rounds,
    ));
    let grain = Grain {
        least: setting.least,
        spread: setting.spread,
        slow: setting.slow,
        members: setting.members,
    };
    let teams: Vec<_> = (0..programs as u64)
        .map(|program| Arc::new(Team::new(grain, setting.seed ^ (program << 32), window.clone())))
        .collect();
    let resumed =
        (0..setting.members).map(|_| CachePadded::new(AtomicBool::fresh(false))).collect();
    let run = Run { setting, processors, window, teams, resumed: Arc::new(resumed) };
    run.skew(&compute);
    let first_phase = Duration::from_nanos(first_phase_ns);
    let harvest = match setting.method {
        Method::Gang => run.ganged(compute, setting.quantum)?,
        Method::GangTwoPhase => run.ganged(compute, first_phase)?,
        Method::TwoPhase => {
            let barrier = |members| TwoPhase::with_spin(members, first_phase_ns);
            run.uncoordinated(compute, barrier, |_| 0)?
        }
        Method::Busy => run.uncoordinated(compute, BitMask::new, |_| 0)?,
        Method::Yielding | Method::Preferred => {
            run.uncoordinated(compute, Yielding::new, Yielding::yields)?
        }
    };
    Ok(run.sum(&harvest))
}

/// A measurement in progress.
struct Run<'a> {
    /// The settings of the measurement.
    setting: &'a Setting,
    /// Numbers of the processors that threads are pinned to.
    processors: &'a [usize],
    /// The time window in which iterations are counted.
    window: Arc<Window>,
    /// The measured programs.
    teams: Vec<Arc<Team>>,
    /// For each processor, true if a waiting thread on it can go on. The leader of a barrier
    /// crossing sets the flags of all processors, and each thread clears its own after a crossing.
    resumed: Arc<Vec<CachePadded<AtomicBool>>>,
}

impl Run<'_> {
    /// Starts as many threads on each processor as there are programs. Each of them computes for a
    /// part of a quantum: "to cause the different processors to start asynchronously".
    fn skew(&self, compute: &impl Compute) {
        // The parts add up to at most a round. They are uniformly distributed, so that every offset
        // in a round is as likely.
        let longest = self.setting.quantum.as_nanos() as u64;
        let grain = Grain { spread: longest, ..Grain::default() };
        for _ in 0..self.setting.load {
            for (index, &processor) in self.processors.iter().enumerate().take(self.setting.members)
            {
                let compute = compute.clone();
                let part = grain.draw(self.setting.seed, index, 0);
                drop(thread::spawn(move || {
                    let _kept = topology::pin(processor);
                    compute(part);
                }));
            }
        }
    }

    /// Runs threads without coordination, each pinned to its processor. Each program has a barrier
    /// of its own. `yields` returns how often threads have yielded at a barrier.
    fn uncoordinated<B: Barrier + 'static>(
        &self,
        compute: impl Compute,
        barrier: impl Fn(usize) -> Result<B, WrongSize>,
        yields: impl Fn(&B) -> u64,
    ) -> Result<Harvest, String> {
        let members = self.setting.members;
        let barriers: Result<Vec<_>, _> =
            self.teams.iter().map(|_| barrier(members).map(Arc::new)).collect();
        let barriers = barriers.map_err(|wrong| wrong.to_string())?;
        let mut handles = Vec::new();
        for (team, barrier) in self.teams.iter().zip(&barriers) {
            for (index, &processor) in self.processors.iter().enumerate().take(members) {
                let (team, barrier, compute) = (team.clone(), barrier.clone(), compute.clone());
                let resumed =
                    (self.setting.method == Method::Preferred).then(|| self.resumed.clone());
                handles.push(thread::spawn(move || {
                    let _kept = topology::pin(processor);
                    let mut place = barrier.member_state(index);
                    team.member(index, compute, || {
                        // A barrier that only watches calls this spin policy.
                        let crossed =
                            barrier.wait_at(&mut place, &mut Spin::start(), Deadline::NEVER);
                        if let Some(resumed) = &resumed {
                            // Relaxed: a hint to the computing threads.
                            if matches!(crossed, Ok(crossing) if crossing.is_leader()) {
                                resumed.iter().for_each(|one| one.store(true, Ordering::Relaxed));
                            }
                            resumed[index].store(false, Ordering::Relaxed);
                        }
                        crossed.map(|_| ())
                    })
                }));
            }
        }
        let computing = self.computing(compute);
        let laps = handles.into_iter().map(|handle| match handle.join() {
            Ok(lap) => lap.map_err(|broken| broken.to_string()),
            Err(_) => Err("a thread of a program panicked".to_owned()),
        });
        let laps = laps.collect::<Result<Vec<_>, _>>()?;
        for handle in computing {
            handle.join().map_err(|_| "a thread that only computes panicked".to_owned())?;
        }
        Ok(Harvest {
            laps: laps.into_iter().step_by(members).collect(),
            yields: barriers.iter().map(|barrier| yields(barrier)).sum(),
        })
    }

    /// Runs the programs as gangs of the executor. Members wait busily for `spin` and then yield.
    fn ganged(&self, compute: impl Compute, spin: Duration) -> Result<Harvest, String> {
        let (members, quantum) = (self.setting.members, self.setting.quantum);
        let built = GangExecutor::builder()
            .processors(members)
            .quantum(quantum)
            .spin(spin)
            .pin(true)
            .build();
        let executor = built.map_err(|refused| refused.to_string())?;
        let mut handles = Vec::new();
        for team in &self.teams {
            let (team, compute) = (team.clone(), compute.clone());
            let body = move |member: &mut Member| -> Result<Lap, Ended> {
                team.member(member.index(), compute.clone(), || member.barrier())
            };
            handles.push(executor.spawn(members, body).map_err(|refused| refused.to_string())?);
        }
        let first = handles
            .into_iter()
            .map(|handle| handle.join().map(|laps| laps[0]).map_err(|error| error.to_string()));
        Ok(Harvest { laps: first.collect::<Result<_, _>>()?, yields: 0 })
    }

    /// Starts the threads of the programs that are not measured.
    fn computing(&self, compute: impl Compute) -> Vec<thread::JoinHandle<u64>> {
        let others = self.setting.load - self.teams.len();
        let places =
            (0..others).flat_map(|_| self.processors.iter().enumerate().take(self.setting.members));
        let start = |(index, &processor): (usize, &usize)| {
            let (window, compute) = (self.window.clone(), compute.clone());
            let resumed = self.resumed.clone();
            thread::spawn(move || {
                let _kept = topology::pin(processor);
                compute_bound(&window, TICK_NS, compute, || {
                    // Relaxed: a hint. It is set only with `Preferred`.
                    if resumed[index].load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                })
            })
        };
        places.map(start).collect()
    }

    /// Computes the mean iteration of all measured programs.
    fn sum(&self, harvest: &Harvest) -> Measured {
        let Harvest { laps, yields } = harvest;
        let iterations: u64 = laps.iter().map(|lap| lap.iterations).sum();
        let all: u64 = laps.iter().map(|lap| lap.all).sum();
        let waits = all * (self.setting.members as u64 - 1);
        // If there was no iteration, the window is a lower bound for one.
        let length = self.window.length().as_secs_f64() * 1e3;
        Measured {
            time: length * laps.len() as f64 / iterations.max(1) as f64,
            iterations,
            alpha: *yields as f64 / waits.max(1) as f64,
        }
    }
}
