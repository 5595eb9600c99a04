//! Gangs that take turns on all processors, against as many groups of threads that nobody coordinates: how many crossings there are in all, by the work
//! between them. And an executor that has nothing to do.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use machine::wait::Spin;
use stanchion_gang::barrier::{Barrier, Blocking, CoResident, TwoPhase};
use stanchion_gang::{GangExecutor, Waiter};

use crate::measure::{self, Member, Work, median};
use crate::options::Options;

/// Members of each gang, and seats of the executor.
const MEMBERS: usize = 2;
const GANGS: [usize; 4] = [1, 2, 3, 4];
const GRAINS: [u64; 4] = [0, 1_000, 10_000, 50_000];

struct Contestant {
    name: &'static str,
    /// The time by the crossings of so many groups that work for so long between two.
    run: fn(usize, u64, Duration) -> f64,
}

const CONTESTANTS: [Contestant; 5] = [
    Contestant { name: "gangs that spin", run: gangs },
    Contestant { name: "threads that spin", run: threads::<Spinning> },
    Contestant { name: "threads, Blocking", run: threads::<Waiter<Arc<Blocking>>> },
    Contestant { name: "threads, TwoPhase", run: threads::<Waiter<Arc<TwoPhase>>> },
    Contestant { name: "threads, CoResident", run: threads::<Waiter<Arc<CoResident>>> },
];

/// Members of one group.
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

/// A member that never gives its processor away.
struct Spinning(Waiter<Arc<stanchion_gang::barrier::Central>>);

impl Member for Spinning {
    fn cross(&mut self) {
        let crossed = self.0.wait_with(&mut Spin, machine::clock::Deadline::NEVER);
        let _ = crossed.expect("nobody leaves");
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
        self.0.barrier().expect("nobody ends the gang");
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

/// The time of a crossing, of all groups together.
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
        for _ in 0..options.rounds {
            for (contestant, figures) in running.iter().zip(&mut rounds) {
                for (grain, figures) in GRAINS.iter().zip(figures) {
                    figures.push((contestant.run)(groups, *grain, options.lasting));
                }
            }
        }
        for (contestant, figures) in running.iter().zip(&mut rounds) {
            let figures = figures.each_mut().map(|figures| format!("{:>11.0}", median(figures)));
            println!("{:<34} {}", format!("{cell}, {}", contestant.name), figures.concat());
        }
    }
    idle(options);
}

/// What an executor takes that has had work and has none.
fn idle(options: &Options) {
    let executor = GangExecutor::builder().seats(MEMBERS).build().expect("few seats");
    let gang = executor.spawn(MEMBERS, |member| member.barrier()).expect("there is a slot");
    gang.join().expect("it ended well");
    // What is on its way to bed gets there.
    thread::sleep(Duration::from_millis(50));
    let before = measure::process_time();
    thread::sleep(options.lasting);
    let took = measure::process_time() - before;
    println!(
        "idle executor: {took} ns of processor time in {:?}, this program's own sleep with it",
        options.lasting
    );
}
