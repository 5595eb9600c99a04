//! Tests of programs with `Arena` as their allocator: the same bytes on every run, whatever the
//! process did before and wherever it was loaded.

mod common;

use common::Word;
use stanchion_simulator::inside::{self, identity};
use stanchion_simulator::{Arena, Machine, Simulation, ThreadId, machines};
use std::collections::VecDeque;
use std::env;
use std::hint::black_box;
use std::process::Command;
use std::rc::Rc;
use std::thread;

#[global_allocator]
static ARENA: Arena = Arena;

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

/// Six threads that allocate words, use those of the others, grow vectors, and free what another
/// allocated; every word's identity.
fn program() -> Vec<u64> {
    let words: Rc<Vec<Rc<Word>>> = Rc::new((0..12).map(|_| Rc::new(Word::new(0))).collect());
    let bag = Rc::new(std::cell::RefCell::new(VecDeque::<Rc<Word>>::new()));
    let threads: Vec<_> = (0..6_usize)
        .map(|me| {
            let (words, bag) = (Rc::clone(&words), Rc::clone(&bag));
            spawn(move || {
                let own = Word::new(0);
                let mut kept = Vec::new();
                for round in 0..40 {
                    words[(me + round) % words.len()].add(1);
                    own.store(round as u64);
                    kept.push(Rc::new(Word::new(words[me].load())));
                    let other = bag.borrow_mut().pop_front();
                    if let Some(other) = other {
                        other.swap(1);
                    }
                    bag.borrow_mut().push_back(Rc::clone(&kept[round / 2]));
                    inside::work(inside::entropy() % 500);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(inside::join);
    bag.borrow().iter().chain(words.iter()).map(|word| identity(word.address())).collect()
}

/// All that a run of the program says.
fn outcome(machine: Machine) -> String {
    let run = Simulation::new(machine).seed(7).timeline().run(program).unwrap();
    format!("{:?} {:?} {:?}", run.result, run.statistics, run.timeline)
}

/// All of the papers' kinds of memory.
fn outcomes() -> Vec<String> {
    [machines::symmetry_a(20), machines::challenge(), machines::firefly(), machines::modern(8)]
        .map(outcome)
        .into()
}

#[test]
fn every_run_says_the_same() {
    let first = outcomes();
    assert_eq!(outcomes(), first);
    // On another thread, after another past, and while other runs are under way.
    thread::scope(|scope| {
        let runs = [0; 2].map(|_| {
            scope.spawn(|| {
                let past: Vec<_> = (1..500).map(|size| black_box(vec![0_u8; size])).collect();
                drop(past.into_iter().step_by(2).collect::<Vec<_>>());
                outcomes()
            })
        });
        assert_eq!(runs.map(|run| run.join().unwrap()), [first.clone(), first.clone()]);
    });
}

#[test]
fn every_process_says_the_same() {
    const MARK: &str = "STANCHION_OTHER_PROCESS";
    if env::var_os(MARK).is_some() {
        println!("<{}>", outcomes().join("\n"));
        return;
    }
    // Each is loaded elsewhere; the length of the environment moves the stack.
    let said = [1, 77, 5_000].map(|length| {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "every_process_says_the_same", "--nocapture", "--test-threads=1"])
            .env(MARK, "x".repeat(length))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (begin, end) = (said.find('<').unwrap(), said.rfind('>').unwrap());
        said[begin + 1..end].to_owned()
    });
    let here = outcomes().join("\n");
    assert!(said.iter().all(|said| *said == here), "{said:?}");
}

#[test]
fn what_a_run_returns_outlives_it() {
    let runs: Vec<Vec<String>> = (0..8)
        .map(|run| {
            let body = move || (0..100).map(|n| format!("run {run}, line {n}")).collect();
            Simulation::new(machines::modern(2)).run(body).unwrap().result
        })
        .collect();
    // Longer, elsewhere, and freed by another thread.
    let mut all: Vec<String> = runs.into_iter().rev().flatten().collect();
    all.iter_mut().for_each(|line| line.push_str(", after the run"));
    thread::spawn(move || {
        assert_eq!(all[0], "run 7, line 0, after the run");
        assert_eq!(all[799], "run 0, line 99, after the run");
    })
    .join()
    .unwrap();
}

/// Returns how often a line went from cache to cache while four threads wrote words of their own,
/// which `make` allocates one after the other.
fn transfers<T: 'static>(make: fn() -> Box<T>, word: fn(&T) -> &Word) -> u64 {
    let run = Simulation::new(machines::modern(4)).run(move || {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let own = make();
                spawn(move || {
                    for round in 0..100 {
                        word(&own).store(round);
                        // Longer than it takes to start the others.
                        inside::work(10_000);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(inside::join);
    });
    run.unwrap().statistics.accesses.transfers
}

#[test]
fn small_boxes_share_a_line_and_padded_ones_do_not() {
    #[repr(align(128))]
    struct Padded(Word);
    let bare = transfers(|| Box::new(Word::new(0)), |word| word);
    assert!(bare > 50, "{bare}");
    assert_eq!(transfers(|| Box::new(Padded(Word::new(0))), |padded| &padded.0), 0);
}
