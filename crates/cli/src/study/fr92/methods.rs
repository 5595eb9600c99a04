//! The three methods, and what stands between them, over the crates of one machine: this file is compiled for this computer and for simulated ones.

use std::sync::Arc;
use std::time::Duration;

use super::super::points::{Measured, Method, Others, Setting};
use super::applications::iterations::{Grain, Lap, Team, Window, Yielding, compute_bound};
use super::gang::barrier::{Barrier, BitMask};
use super::gang::{Ended, GangExecutor, Member};
use super::machine::atomic::{AtomicBool, Fresh, Ordering};
use super::machine::clock::Deadline;
use super::machine::topology::CachePadded;
use super::machine::wait::{Patient, Spin, WaitPolicy};
use super::machine::{thread, topology};

/// How a thread computes for so many nanoseconds.
pub(super) trait Compute: Fn(u64) + Clone + Send + Sync + 'static {}
impl<F: Fn(u64) + Clone + Send + Sync + 'static> Compute for F {}

/// How long a thread that only computes does so before it looks whether it should give way.
const TICK_NS: u64 = 100_000;

/// What a member of a measured program brings home.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    lap: Lap,
    yields: u64,
}

/// A policy, and how often it has yielded.
trait Counted: WaitPolicy {
    fn yields(&self) -> u64 {
        0
    }
}

/// Busy waiting for a time, then yielding.
type TwoPhase = Patient<{ super::FIRST_PHASE_NS }, { u32::MAX }>;

impl Counted for Spin {}
impl Counted for TwoPhase {}
impl Counted for Yielding {
    fn yields(&self) -> u64 {
        Yielding::yields(*self)
    }
}

/// Measures `setting` with its threads on `processors`, one of each program on each.
pub(super) fn measure(
    setting: &Setting,
    processors: &[usize],
    compute: impl Compute,
) -> Result<Measured, String> {
    let programs = match setting.others {
        Others::Alike => setting.load,
        Others::Computing => 1,
    };
    // The others of a computing load are threads of their own, without gangs.
    let window = Arc::new(Window::new(
        setting.load * setting.members,
        setting.quantum + 3 * setting.round(),
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
    let shares = match setting.method {
        Method::Gang => run.ganged(compute, setting.quantum)?,
        Method::GangTwoPhase => run.ganged(compute, Duration::from_nanos(super::FIRST_PHASE_NS))?,
        Method::TwoPhase => run.uncoordinated::<BitMask, TwoPhase>(compute)?,
        Method::Busy => run.uncoordinated::<BitMask, Spin>(compute)?,
        Method::Yielding | Method::Preferred => run.uncoordinated::<BitMask, Yielding>(compute)?,
    };
    run.sum(&shares)
}

/// A measurement on its way.
struct Run<'a> {
    setting: &'a Setting,
    processors: &'a [usize],
    window: Arc<Window>,
    teams: Vec<Arc<Team>>,
    /// For each processor, whether a thread of it that waited can go on.
    resumed: Arc<Vec<CachePadded<AtomicBool>>>,
}

impl Run<'_> {
    /// On each processor as many threads as there are programs, each of which computes for a part of a quantum: "to cause the different processors
    /// to start asynchronously".
    fn skew(&self, compute: &impl Compute) {
        // Together up to a round, all times alike: so every place in it is as likely.
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

    /// Threads that nobody coordinates, kept on their processors.
    fn uncoordinated<B: Barrier + 'static, P: Counted>(
        &self,
        compute: impl Compute,
    ) -> Result<Vec<Vec<Share>>, String> {
        let members = self.setting.members;
        let mut handles = Vec::new();
        for team in &self.teams {
            let barrier = B::with_members(members).map_err(|wrong| wrong.to_string())?;
            let barrier = Arc::new(barrier);
            for (index, &processor) in self.processors.iter().enumerate().take(members) {
                let (team, barrier, compute) = (team.clone(), barrier.clone(), compute.clone());
                let resumed =
                    (self.setting.method == Method::Preferred).then(|| self.resumed.clone());
                handles.push(thread::spawn(move || {
                    let _kept = topology::pin(processor);
                    let mut place = barrier.place(index);
                    let mut yields = 0;
                    let lap = team.member(index, compute, || {
                        let mut policy = P::start();
                        let crossed = barrier.wait_at(&mut place, &mut policy, Deadline::NEVER);
                        yields += policy.yields();
                        if let Some(resumed) = &resumed {
                            // Relaxed: a hint to those who compute.
                            if matches!(crossed, Ok(crossing) if crossing.is_leader()) {
                                resumed.iter().for_each(|one| one.store(true, Ordering::Relaxed));
                            }
                            resumed[index].store(false, Ordering::Relaxed);
                        }
                        crossed.map(|_| ())
                    });
                    lap.map(|lap| Share { lap, yields })
                }));
            }
        }
        let computing = self.computing(compute);
        let mut shares = handles.into_iter().map(|handle| match handle.join() {
            Ok(share) => share.map_err(|broken| broken.to_string()),
            Err(_) => Err("a thread of a program panicked".to_owned()),
        });
        let shares = shares.by_ref().collect::<Result<Vec<_>, _>>()?;
        for handle in computing {
            handle.join().map_err(|_| "a thread that only computes panicked".to_owned())?;
        }
        Ok(shares.chunks(members).map(<[Share]>::to_vec).collect())
    }

    /// Gangs, as the executor runs them, whose members yield after waiting busily for `spin`.
    fn ganged(&self, compute: impl Compute, spin: Duration) -> Result<Vec<Vec<Share>>, String> {
        let (members, quantum) = (self.setting.members, self.setting.quantum);
        let built =
            GangExecutor::builder().seats(members).quantum(quantum).spin(spin).pin(true).build();
        let executor = built.map_err(|refused| refused.to_string())?;
        let mut handles = Vec::new();
        for team in &self.teams {
            let (team, compute) = (team.clone(), compute.clone());
            let body = move |member: &mut Member| -> Result<Share, Ended> {
                let lap = team.member(member.index(), compute.clone(), || member.barrier())?;
                Ok(Share { lap, yields: 0 })
            };
            handles.push(executor.spawn(members, body).map_err(|refused| refused.to_string())?);
        }
        let join =
            handles.into_iter().map(|handle| handle.join().map_err(|error| error.to_string()));
        join.collect()
    }

    /// The threads of programs that are not measured.
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
                    // Relaxed: a hint; nobody sets it but for `Preferred`.
                    if resumed[index].load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                })
            })
        };
        places.map(start).collect()
    }

    /// The mean iteration of all programs that were measured.
    fn sum(&self, programs: &[Vec<Share>]) -> Result<Measured, String> {
        let laps = || programs.iter().map(|members| members[0].lap);
        let iterations: u64 = laps().map(|lap| lap.iterations).sum();
        let length = self.window.length();
        let yields: u64 = programs.iter().flatten().map(|share| share.yields).sum();
        let waits: u64 = laps().map(|lap| lap.all).sum::<u64>() * (self.setting.members as u64 - 1);
        // Without any, one takes at least so long.
        Ok(Measured {
            time: length.as_secs_f64() * 1e3 * programs.len() as f64 / iterations.max(1) as f64,
            iterations,
            alpha: yields as f64 / waits.max(1) as f64,
        })
    }
}
