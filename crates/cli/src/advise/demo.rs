//! A small program with locks that differ. It shows what `advise` says, before any program is
//! recorded. It also runs with the default mutex, so that the figures of that can be compared with
//! what the mutex really costs.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use stanchion_competitive::policy::{FixedSpin, Policy};
use stanchion_competitive::waits::{self, Recorder, Recording};
use stanchion_competitive::{PolicyMutex, RawPolicyMutex};

/// The time for which it runs.
pub(crate) const TIME: Duration = Duration::from_secs(2);
/// The number of its threads: more than the processors of a small machine, so that some waits are
/// for a thread that was preempted.
pub(crate) const THREADS: u64 = 4;

/// The names of the locks.
const NAMES: [&str; 3] = ["short sections", "long sections", "mixed sections"];

/// One round of a thread. `take` gets a lock's place in [`NAMES`], for how many nanoseconds it is
/// held, and for how many the thread then stays away.
fn round(turn: u64, mut take: impl FnMut(usize, u64, u64)) {
    for _ in 0..400 {
        take(0, 300, 300);
    }
    for step in 0..40 {
        // Mostly short, every tenth time long.
        let long = (turn + step).is_multiple_of(10);
        take(2, if long { 60_000 } else { 500 }, 2_000);
    }
    for _ in 0..2 {
        take(1, 150_000, 100_000);
    }
}

/// Runs it and says what the waits were.
pub(crate) fn record() -> Recording {
    waits::restart();
    run(&NAMES.map(|name| Recorder::with_policy(name, FixedSpin::new())).map(mutex));
    let mut recording = waits::snapshot();
    recording.program = "demo".to_owned();
    recording
}

/// Runs it with the default mutex, and returns by the names of the locks what their waits cost, in
/// multiples of what the off-line optimum would have paid for them. C is what the mutex took it to
/// be in each wait.
pub(crate) fn measure() -> Vec<(&'static str, f64)> {
    let locks = NAMES.map(|_| mutex(Meter::new()));
    run(&locks);
    let measured = NAMES.iter().zip(&locks).map(|(name, lock)| {
        // SAFETY: only the policy is looked at; the lock is neither taken nor released.
        let meter = unsafe { lock.raw() }.policy();
        (*name, meter.relative())
    });
    measured.filter(|(_, times)| times.is_finite()).collect()
}

fn mutex<P>(policy: P) -> PolicyMutex<(), P>
where
    P: Policy,
{
    PolicyMutex::from_raw(RawPolicyMutex::with_policy(policy), ())
}

fn run<P: Policy>(locks: &[PolicyMutex<(), P>; 3]) {
    let end = Instant::now() + TIME;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut turn = thread;
                while Instant::now() < end {
                    round(turn, |lock, held, away| {
                        let guard = locks[lock].lock();
                        busy(held);
                        drop(guard);
                        busy(away);
                    });
                    turn += 1;
                }
            });
        }
    });
}

fn busy(nanos: u64) {
    let began = Instant::now();
    while began.elapsed().as_nanos() < nanos.into() {
        hint::spin_loop();
    }
}

/// Defines a policy that lets the default's decide and adds up what the waits cost, for the crate
/// of that name or its twin.
///
/// A wait has spun for no longer than the policy let it. Beyond that, the thread had lost its
/// processor while it spun.
macro_rules! meter {
    ($competitive:ident $machine:ident) => {
        use std::cell::Cell;
        use std::sync::atomic::{AtomicU64, Ordering};

        $machine::thread_local! {
            /// For how many nanoseconds this thread's wait may have spun.
            static ALLOWED: Cell<u64> = Cell::new(0);
        }

        /// The default's policy, with the cost of its waits. The lock's holder writes the sums.
        struct Meter {
            /// The policy that decides.
            policy: $competitive::policy::Adaptive,
            /// The time spun, and C for each block.
            paid: AtomicU64,
            /// The same of the off-line optimum.
            optimum: AtomicU64,
        }

        impl Meter {
            const fn new() -> Self {
                let policy = $competitive::policy::Adaptive::new();
                Self { policy, paid: AtomicU64::new(0), optimum: AtomicU64::new(0) }
            }

            fn relative(&self) -> f64 {
                // Relaxed, here and below: sums by themselves.
                let [paid, optimum] =
                    [&self.paid, &self.optimum].map(|sum| sum.load(Ordering::Relaxed) as f64);
                paid / optimum
            }
        }

        impl $competitive::policy::Policy for Meter {
            const INIT: Self = Self::new();

            fn threshold(&self, contention: &$competitive::policy::Contention) -> u64 {
                let threshold = self.policy.threshold(contention);
                ALLOWED.with(|allowed| {
                    let before = if contention.blocks() == 0 { 0 } else { allowed.get() };
                    allowed.set(before + threshold);
                });
                threshold
            }

            fn keep_spinning(&self, contention: &$competitive::policy::Contention) -> bool {
                self.policy.keep_spinning(contention)
            }

            fn adjust(&self, wait: &$competitive::policy::Wait) {
                let spun = wait.spun().min(ALLOWED.with(Cell::get));
                let paid = spun + u64::from(wait.blocks()) * wait.cost();
                self.paid.fetch_add(paid, Ordering::Relaxed);
                self.optimum.fetch_add(wait.length().min(wait.cost()), Ordering::Relaxed);
                self.policy.adjust(wait);
            }
        }
    };
}

meter!(stanchion_competitive stanchion_machine);

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use sim_competitive::policy::{FixedSpin, Policy};
    use sim_competitive::waits::{self, Recorder};
    use sim_competitive::{PolicyMutex, RawPolicyMutex};
    use stanchion_competitive::waits::Recording;
    use stanchion_machine::topology;
    use stanchion_paper_klmo91::waits::judge::DEFAULT;
    use stanchion_paper_klmo91::waits::pool::Pool;
    use stanchion_simulator::{Simulation, inside, machines};

    use super::super::Advice;
    use super::{NAMES, THREADS, round};

    meter!(sim_competitive sim_machine);

    const ROUNDS: u64 = 100;

    /// Runs the program in virtual time, with a processor for each thread. The seed decides for how
    /// long a thread stays away.
    fn run<P: Policy + 'static, R: 'static>(
        policies: impl FnOnce() -> [P; 3] + 'static,
        result: impl FnOnce(&[PolicyMutex<(), P>; 3]) -> R + 'static,
    ) -> R {
        let body = move || {
            let mutex = |policy| PolicyMutex::from_raw(RawPolicyMutex::with_policy(policy), ());
            let locks = Rc::new(policies().map(mutex));
            let threads = (0..THREADS).map(|thread| {
                let locks = locks.clone();
                let body = move || {
                    for turn in thread..thread + ROUNDS {
                        round(turn, |lock, held, away| {
                            let guard = locks[lock].lock();
                            inside::work(held);
                            drop(guard);
                            inside::work(inside::entropy() % (2 * away));
                        });
                    }
                };
                inside::spawn(None, None, Box::new(body))
            });
            threads.collect::<Vec<_>>().into_iter().for_each(inside::join);
            result(&locks)
        };
        Simulation::new(machines::modern(THREADS as usize))
            .seed(27)
            .run(body)
            .expect("it ends")
            .result
    }

    /// The bounds are wide: the waits of the two runs differ, and a recording lacks what `advise`
    /// says that it lacks. Both runs are the same every time.
    #[test]
    fn the_default_costs_about_what_its_column_says() {
        if topology::usable() == 1 {
            return eprintln!("skipped: on one processor the default never spins");
        }
        let policies = || {
            waits::restart();
            NAMES.map(|name| Recorder::with_policy(name, FixedSpin::new()))
        };
        let text = run(policies, |_| waits::snapshot().to_json());
        let recording = Recording::from_json(text.as_bytes()).unwrap();
        let advice = Advice::of(Pool::of(vec![recording])).unwrap();
        let measured = run(
            || NAMES.map(|_| Meter::new()),
            // SAFETY: only the policies are looked at.
            |locks| locks.each_ref().map(|lock| unsafe { lock.raw() }.policy().relative()),
        );
        for (lock, found) in advice.each() {
            let computed = found.judged.costs[0].relative()[DEFAULT];
            let place = NAMES.iter().position(|name| *name == lock.name).unwrap();
            let ratio = computed / measured[place];
            assert!(
                (1.0 / 3.0..3.0).contains(&ratio),
                "{}: {computed}, {}",
                lock.name,
                measured[place]
            );
        }
        assert_eq!(advice.locks.len(), 3, "each lock is checked");
    }
}
