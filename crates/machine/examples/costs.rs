//! Prints what each query of the machine costs here: the numbers in this crate's documentation.
//!
//! ```text
//! cargo run --release -p stanchion-machine --example costs
//! ```

use stanchion_machine::atomic::{AtomicBool, AtomicU32, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::stack::{Guards, Size, Slab, Stack};
use stanchion_machine::{asymmetric, park, preemption, presence, stack, thread, topology};
use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Prints the least mean time of several rounds of `count` calls. It is the least because a
/// disturbance only lengthens a round.
fn cost<R>(what: &str, count: u32, mut call: impl FnMut() -> R) {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..count {
            black_box(call());
        }
        start.elapsed().as_nanos() as f64 / f64::from(count)
    };
    let least = (0..7).map(round).fold(f64::INFINITY, f64::min);
    println!("{what:44} {least:10.2} ns");
}

/// Prints how long one call takes, the first of its kind in this process.
fn first<R>(what: &str, call: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = call();
    println!("{what:44} {:10.2} us, once", start.elapsed().as_nanos() as f64 / 1000.0);
    result
}

fn main() {
    let start = first("clock::now: choosing the clock", stanchion_machine::clock::now);
    first("Ticks::plus_nanos: finding its speed", || black_box(start.plus_nanos(1_000)));
    first("topology::usable: asking for the mask", topology::usable);
    first("thread::index: numbering a thread", thread::index);
    let pause = first("clock::pause_ns", stanchion_machine::clock::pause_ns);
    let status = first("presence::status: the self-check", presence::status);

    cost("clock::now", 1_000_000, stanchion_machine::clock::now);
    cost("clock::now and nanos_since", 1_000_000, || {
        stanchion_machine::clock::now().nanos_since(start)
    });
    cost("Instant::now", 1_000_000, Instant::now);
    let deadline = Deadline::after(Duration::from_secs(3600));
    cost("Deadline::passed", 1_000_000, || deadline.passed());
    cost("thread::index", 1_000_000, thread::index);
    let word = AtomicU32::new(0);
    cost("park::wake_one, no waiter", 100_000, || park::wake_one(&word));
    cost("park::wait, word changed", 1_000_000, || park::wait(&word, 1, deadline));
    cost("topology::processors", 10_000, topology::processors);
    cost("topology::usable", 1_000_000, topology::usable);
    cost("topology::quota", 200, topology::quota);

    cost("preemption::keep and thank", 1_000_000, || {
        preemption::keep();
        preemption::thank()
    });

    barriers();

    let (sender, receiver) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let sleeper = std::thread::spawn(move || {
        let me = presence::register();
        sender.send(thread::index().unwrap_or(0)).ok();
        stopped.recv().ok();
        drop(me);
    });
    let asleep = receiver.recv().unwrap_or(0);
    std::thread::sleep(Duration::from_millis(5));
    cost("presence::register and drop", 1_000, || drop(presence::register()));
    let me = presence::register();
    let mine = me.as_ref().map_or(0, presence::Registration::index);
    cost("presence::of a thread that runs", 1_000_000, || presence::of(mine));
    cost("presence::of a thread that sleeps", 1_000_000, || presence::of(asleep));
    cost("presence::since a thread that sleeps", 1_000_000, || presence::since(asleep));
    drop(stop);
    sleeper.join().ok();
    drop(me);

    two_switches("two switches, of threads without records", false);
    two_switches("two switches, recorded with their times", true);

    stacks();

    println!();
    println!("clock            {}, one pause {pause:.1} ns", stanchion_machine::clock::source());
    println!("processors       {:?}, {} at once", topology::processors(), topology::parallelism());
    match topology::quota() {
        Some(quota) => println!("quota            {quota}"),
        None => println!("quota            none"),
    }
    println!("presence         {}", yes_or_why(status));
    println!("requests         {:?}", preemption::means());
}

/// Prints what asymmetric barriers cost: before the process registers, while it registers beside
/// another thread, with that thread running, and without.
fn barriers() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, running) = mpsc::channel();
        let stop = &stop;
        scope.spawn(move || {
            sender.send(()).ok();
            // Relaxed: the word publishes no other data.
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        running.recv().ok();
        cost("asymmetric::light, not registered", 1_000, asymmetric::light);
        first("asymmetric::heavy, registers", asymmetric::heavy);
        spaced("asymmetric::heavy, another thread running", asymmetric::heavy);
        stop.store(true, Ordering::Relaxed);
    });
    spaced("asymmetric::heavy, alone", asymmetric::heavy);
    cost("asymmetric::light", 1_000_000, asymmetric::light);
}

/// Prints the median time of a thousand calls, with a space of twice its time after each. Heavy
/// fences without spaces are too many, and then both sides fence.
fn spaced(what: &str, call: impl Fn()) {
    let mut times = [(); 1_000].map(|()| {
        let start = Instant::now();
        call();
        let took = start.elapsed();
        while start.elapsed() < 3 * took {
            std::hint::spin_loop();
        }
        took.as_nanos()
    });
    times.sort_unstable();
    println!("{what:44} {:10} ns", times[times.len() / 2]);
}

/// Prints the cost of two threads on one processor that wake each other: two switches, each out of
/// one thread and into the other.
fn two_switches(what: &str, recorded: bool) {
    const OVER: u32 = u32::MAX;
    let turn = AtomicU32::new(0);
    let processor = topology::processors().first().copied().unwrap_or(0);
    let settle = || (topology::pin(processor), recorded.then(presence::register));
    // One thread continues when the turn is odd, the other when it is even.
    let wait_for = |parity: u32| loop {
        let seen = turn.load(Ordering::Acquire);
        if seen % 2 == parity {
            return seen;
        }
        park::wait(&turn, seen, Deadline::NEVER);
    };
    let go_on = |seen: u32| {
        turn.store(seen, Ordering::Release);
        park::wake_one(&turn);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _settled = settle();
            loop {
                match wait_for(1) {
                    OVER => return,
                    seen => go_on(seen + 1),
                }
            }
        });
        scope.spawn(|| {
            let _settled = settle();
            cost(what, 20_000, || {
                go_on(turn.load(Ordering::Relaxed) + 1);
                wait_for(0)
            });
            go_on(OVER);
        });
    });
}

/// Prints what stacks cost, with both kinds of guards: a new one, its pages, one after its pages
/// were given back, and one that is used again as it is.
fn stacks() {
    first("stack::guards: trying", stack::guards);
    for kind in [Guards::Installed, Guards::Protected] {
        const ROUNDS: u32 = 1000;
        let Ok(mut slab) =
            Size::of(64 << 10).and_then(|size| Slab::new(size, 7 * ROUNDS as usize, kind, ""))
        else {
            return;
        };
        if slab.guards() != kind {
            continue;
        }
        let mut stacks = Vec::new();
        cost(&format!("stack: a fresh one, guard {kind:?}"), ROUNDS, || {
            stacks.extend(slab.next_stack().ok().flatten());
        });
        let mut untouched = stacks.iter();
        cost("stack: its page touched first", ROUNDS, || untouched.next().map(touch));
        let mut used = stacks.iter_mut();
        cost("stack: given back, one page touched", ROUNDS, || {
            // SAFETY: nothing is on the stack.
            used.next().map(|stack| unsafe { stack.discard() })
        });
        let mut empty = stacks.iter();
        cost("stack: its page touched again", ROUNDS, || empty.next().map(touch));
        if let Some(stack) = stacks.first() {
            cost("stack: its page touched when it has one", 1_000_000, || touch(stack));
            cost("stack: a name of 16 bytes", 1_000_000, || {
                stack.set_name(Some("sorter of parcel"))
            });
            cost("stack: no name", 1_000_000, || stack.set_name(None));
        }
    }
    cost("stack::watch and drop", 10_000, stack::watch);
    #[cfg(unix)]
    on_stacks::beside_mappings();
}

/// Measures coroutines on stacks of a slab, and on mappings of their own.
#[cfg(unix)]
mod on_stacks {
    use super::{Size, Slab, Stack, cost, stack};
    use corosensei::stack::{DefaultStack, StackPointer};
    use corosensei::{Coroutine, Yielder};

    /// A stack in the form that a coroutine takes.
    struct On(Stack);

    // SAFETY: the stack has a guard below, and at least 15 KiB above it.
    unsafe impl corosensei::stack::Stack for On {
        fn base(&self) -> StackPointer {
            self.0.base()
        }

        fn limit(&self) -> StackPointer {
            self.0.limit()
        }
    }

    const BYTES: usize = 64 << 10;

    pub(super) fn beside_mappings() {
        cost("a mapping of its own, made and dropped", 1_000, || {
            DefaultStack::new(BYTES).map(drop)
        });
        for coroutines in [16, 256] {
            let own = (0..coroutines).map_while(|_| DefaultStack::new(BYTES).ok());
            in_turn("own mappings", own.collect());
            let size = Size::of(BYTES);
            let slab = size.and_then(|size| Slab::new(size, coroutines, stack::guards(), ""));
            let Ok(mut slab) = slab else { return };
            let stacks = std::iter::from_fn(|| slab.next_stack().ok().flatten().map(On));
            in_turn("a slab", stacks.collect());
        }
    }

    /// Prints the cost of resuming one of many coroutines, which are resumed in turn.
    fn in_turn<S: corosensei::stack::Stack + 'static>(on: &str, stacks: Vec<S>) {
        let what = format!("resume and leave, {} on {on}", stacks.len());
        let begin = |stack| {
            Coroutine::<bool, (), (), S>::with_stack(stack, |exit: &Yielder<bool, ()>, mut more| {
                while more {
                    more = exit.suspend(());
                }
            })
        };
        let mut coroutines: Vec<_> = stacks.into_iter().map(begin).collect();
        let mut next = 0;
        cost(&what, 100_000, || {
            coroutines[next].resume(true);
            next = if next + 1 < coroutines.len() { next + 1 } else { 0 };
        });
        for coroutine in &mut coroutines {
            if !coroutine.done() {
                coroutine.resume(false);
            }
        }
    }
}

/// Writes the first byte that a thread would write on the stack.
fn touch(stack: &Stack) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(stack.base().get() - 1);
    // SAFETY: the caller owns the stack, and nothing is on it.
    unsafe { place.write_volatile(1) };
}

fn yes_or_why(answer: Result<(), impl ToString>) -> String {
    answer.map_or_else(|why| why.to_string(), |()| "yes".into())
}
