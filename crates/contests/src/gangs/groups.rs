//! Gangs that take turns on all processors, against as many groups of threads without coordination.
//! The figure is the number of crossings of all groups together, by the work between two crossings.
//! One more measurement is an executor that has nothing to do.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use machine::wait::Spin;
use stanchion_gang::barrier::{Barrier, Blocking, CoResident, TwoPhase};
use stanchion_gang::{GangExecutor, Waiter};

use crate::measure::{self, Member, Work, median};
use crate::options::Options;

/// The number of members of each gang, and of processors of the executor.
const MEMBERS: usize = 2;
/// The numbers of gangs.
const GANGS: [usize; 4] = [1, 2, 3, 4];
/// The times of work between two crossings, in nanoseconds.
const GRAINS: [u64; 4] = [0, 1_000, 10_000, 50_000];

/// A way to run groups.
struct Contestant {
    /// The name in tables.
    name: &'static str,
    /// Measures the time of one crossing. The arguments are the number of groups, the work between
    /// two crossings in nanoseconds, and the time of the run.
    run: fn(usize, u64, Duration) -> f64,
}

const CONTESTANTS: [Contestant; 5] = [
    Contestant { name: "gangs that spin", run: gangs },
    Contestant { name: "threads that spin", run: threads::<Spinning> },
    Contestant { name: "threads, Blocking", run: threads::<Waiter<Arc<Blocking>>> },
    Contestant { name: "threads, TwoPhase", run: threads::<Waiter<Arc<TwoPhase>>> },
    Contestant { name: "threads, CoResident", run: threads::<Waiter<Arc<CoResident>>> },
];

/// The members of one group.
trait Group: Member + Send + Sized {
    fn members() -> Vec<Self>;
}

impl<B: Barrier> Group for Waiter<Arc<B>>
where
    Self: Member + Send,
{
    fn members() -> Vec<Self> {
        Waiter::all(Arc::new(B::with_members(MEMBERS).expect("few")))
    }
}

/// A member that never yields its processor.
struct Spinning(Waiter<Arc<stanchion_gang::barrier::Central>>);

impl Member for Spinning {
    fn cross(&mut self) {
        let crossed = self.0.wait_with(&mut Spin, machine::clock::Deadline::NEVER);
        let _ = crossed.expect("no member leaves");
    }
}

impl Group for Spinning {
    fn members() -> Vec<Self> {
        Waiter::<Arc<_>>::members().into_iter().map(Self).collect()
    }
}

/// A member of a gang.
struct InGang<'a>(&'a mut stanchion_gang::Member);

impl Member for InGang<'_> {
    fn cross(&mut self) {
        self.0.barrier().expect("the gang runs");
    }
}

fn threads<G: Group>(groups: usize, grain: u64, lasting: Duration) -> f64 {
    let work = Work::of(grain);
    let figures: Vec<_> = thread::scope(|scope| {
        let mut handles = Vec::new();
        for _ in 0..groups {
            let last = Arc::new(AtomicU64::new(u64::MAX));
            for (index, mut member) in G::members().into_iter().enumerate() {
                let last = last.clone();
                handles.push(scope.spawn(move || {
                    measure::take_part(&mut member, index == 0, work, &last, lasting)
                }));
            }
        }
        handles.into_iter().map(|handle| handle.join().expect("a member ended")).collect()
    });
    each(&figures)
}

fn gangs(groups: usize, grain: u64, lasting: Duration) -> f64 {
    let work = Work::of(grain);
    let executor = GangExecutor::builder().seats(MEMBERS).pin(true).build().expect("few seats");
    let handles: Vec<_> = (0..groups)
        .map(|_| {
            let last = AtomicU64::new(u64::MAX);
            let member = move |member: &mut stanchion_gang::Member| {
                let leads = member.index() == 0;
                Ok(measure::take_part(&mut InGang(member), leads, work, &last, lasting))
            };
            executor.spawn(MEMBERS, member).expect("there is a slot")
        })
        .collect();
    let figures: Vec<_> =
        handles.into_iter().flat_map(|gang| gang.join().expect("it ended well")).collect();
    each(&figures)
}

/// Returns the time of a crossing, of all groups together.
fn each(figures: &[(u64, f64, f64)]) -> f64 {
    1.0 / figures
        .iter()
        .map(|&(crossings, nanos, _)| crossings as f64 / nanos.max(1.0))
        .sum::<f64>()
}

pub(crate) fn run(options: &Options) {
    println!("\ngangs: time by the crossings of all groups of {MEMBERS} together, ns");
    let grains = GRAINS.map(|grain| format!("{:>11}", format!("{} µs", grain / 1_000))).concat();
    println!("{:<34} {grains}", "");
    for groups in GANGS {
        let running: Vec<_> =
            CONTESTANTS.iter().filter(|known| options.wants_contestant(known.name)).collect();
        let cell = format!("{groups} groups");
        if !options.wants_cell(&cell) {
            continue;
        }
        let mut rounds = vec![GRAINS.map(|_| Vec::new()); running.len()];
        for _ in 0..options.rounds() {
            for (contestant, figures) in running.iter().zip(&mut rounds) {
                for (grain, figures) in GRAINS.iter().zip(figures) {
                    figures.push((contestant.run)(groups, *grain, options.lasting()));
                }
            }
        }
        let medians: Vec<_> =
            rounds.iter_mut().map(|figures| figures.each_mut().map(|f| median(f))).collect();
        for (contestant, figures) in running.iter().zip(&medians) {
            let figures = figures.map(|figure| format!("{figure:>11.0}"));
            println!("{:<34} {}", format!("{cell}, {}", contestant.name), figures.concat());
        }
        let of = |name| running.iter().position(|known| known.name == name).map(|at| medians[at]);
        if let (Some(gangs), Some(threads)) = (of(CONTESTANTS[0].name), of(CONTESTANTS[2].name)) {
            draw(&cell, gangs, threads);
        }
    }
    idle(options);
}

/// Draws the factor between gangs and threads that block at each grain, with a mark for each fifth
/// of a doubling, and the grain at which both are even.
fn draw(cell: &str, gangs: [f64; 4], threads: [f64; 4]) {
    let ahead: [f64; 4] = std::array::from_fn(|grain| (threads[grain] / gangs[grain]).log2());
    println!("{cell}: gangs that spin against threads, Blocking");
    for (grain, ahead) in GRAINS.iter().zip(ahead) {
        let bar = "#".repeat((ahead.abs() * 5.0).round().min(30.0) as usize);
        let (left, right) = if ahead < 0.0 { (bar, String::new()) } else { (String::new(), bar) };
        let (grain, factor) = (format!("{} µs", grain / 1_000), ahead.abs().exp2());
        let winner = if ahead < 0.0 { "threads" } else { "gangs" };
        println!("{grain:>9} {left:>30}|{right:<30} {winner} {factor:.2} times as fast");
    }
    match crossing(ahead) {
        Some(nanos) => println!("they cross at {:.1} µs", nanos / 1e3),
        None => println!("they do not cross"),
    }
}

/// Returns the grain in ns at which `ahead` first falls below 0. `ahead` has a logarithm for each
/// of [`GRAINS`]. Between two grains it is taken as linear in the logarithm of the grain. After the
/// first grain, which is 0, it is taken as linear in the grain.
fn crossing(ahead: [f64; 4]) -> Option<f64> {
    (1..GRAINS.len()).find(|&grain| ahead[grain - 1] >= 0.0 && ahead[grain] < 0.0).map(|grain| {
        let part = ahead[grain - 1] / (ahead[grain - 1] - ahead[grain]);
        let (from, to) = (GRAINS[grain - 1] as f64, GRAINS[grain] as f64);
        if from == 0.0 { to * part } else { from * (to / from).powf(part) }
    })
}

/// Measures the processor time of an executor that had work and has none now.
fn idle(options: &Options) {
    let executor = GangExecutor::builder().seats(MEMBERS).build().expect("few seats");
    let gang = executor.spawn(MEMBERS, |member| member.barrier()).expect("there is a slot");
    gang.join().expect("it ended well");
    // Members that are about to sleep do so now.
    thread::sleep(Duration::from_millis(50));
    let before = measure::process_time();
    thread::sleep(options.lasting());
    let took = measure::process_time() - before;
    println!(
        "idle executor: {took} ns of processor time in {:?}, this program's own sleep with it",
        options.lasting()
    );
}
