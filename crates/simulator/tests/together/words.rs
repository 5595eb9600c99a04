//! Tests of the counts by word, and of the statistics as text.

use crate::common;
use common::Word;
use stanchion_simulator::{
    Accesses, Activity, Run, Simulation, Statistics, Time, inside, machines,
};
use std::rc::Rc;

/// Two counters on one line, and one that is alone on its own.
#[repr(C, align(128))]
struct Counters {
    /// A counter.
    left: Word,
    /// Another one on the same line.
    right: Word,
    /// One on a line of its own.
    apart: Apart,
}

#[repr(align(128))]
struct Apart(Word);

fn label(word: &Word, name: &str) {
    inside::label(word.address(), size_of::<Word>(), name);
}

/// Each of three threads counts on a counter of its own, `rounds` times.
fn counters(rounds: u64, words: Option<usize>) -> Run<()> {
    let simulation = Simulation::new(machines::modern(4));
    let simulation = if let Some(count) = words { simulation.words(count) } else { simulation };
    let run = simulation.run(move || {
        let counters = Rc::new(Counters {
            left: Word::new(0),
            right: Word::new(0),
            apart: Apart(Word::new(0)),
        });
        inside::label(Rc::as_ptr(&counters).cast(), size_of::<Counters>(), "counters");
        label(&counters.left, "left");
        label(&counters.right, "right");
        let count = move |of: fn(&Counters) -> &Word| {
            let counters = Rc::clone(&counters);
            let body = move || {
                for _ in 0..rounds {
                    of(&counters).add(1);
                    inside::work(100);
                }
            };
            inside::spawn(None, None, Box::new(body))
        };
        let made = [count(|all| &all.left), count(|all| &all.right), count(|all| &all.apart.0)];
        made.into_iter().for_each(inside::join);
    });
    run.unwrap()
}

#[test]
fn words_that_share_a_line_are_found_by_their_time_and_by_name() {
    let statistics = counters(1_000, Some(0)).statistics;
    let word = |name| statistics.word(name).unwrap();
    let (left, right, rest) = (word("left"), word("right"), word("counters"));
    assert_eq!(left.shares_line_with, ["right"]);
    assert_eq!(right.shares_line_with, ["left"]);
    assert_eq!(rest.shares_line_with, [""; 0]);
    for word in [left, right, rest] {
        assert_eq!((word.accesses.all, word.accesses.exchanges), (1_000, 1_000));
        assert_eq!((word.words, word.lines, word.labelled), (1, 1, true));
    }
    // The one that is alone misses once.
    assert_eq!((rest.accesses.misses, rest.accesses.transfers), (1, 0));
    assert!(left.accesses.transfers > 500 && right.accesses.transfers > 500);
    assert!(left.stalled > rest.stalled * 50);
    assert_eq!(statistics.words.last().unwrap().name, "counters", "the least waited for is last");
}

#[test]
fn words_add_up_to_the_run() {
    let statistics = counters(50, Some(100)).statistics;
    let mut sum = Accesses::default();
    for word in &statistics.words {
        sum.all += word.accesses.all;
        sum.misses += word.accesses.misses;
        sum.transfers += word.accesses.transfers;
        sum.exchanges += word.accesses.exchanges;
        sum.invalidations += word.accesses.invalidations;
        sum.queued += word.accesses.queued;
        sum.occupied += word.accesses.occupied;
    }
    assert_eq!(sum, statistics.accesses);
    let stalled: Time = statistics.words.iter().map(|word| word.stalled).sum();
    assert_eq!(stalled, statistics.times().of(Activity::Stalled));
}

#[test]
fn counting_words_changes_nothing_else() {
    let (counted, not) = (counters(50, Some(3)).statistics, counters(50, None).statistics);
    assert!(not.words.is_empty() && !counted.words.is_empty());
    assert_eq!(Statistics { words: Vec::new(), ..counted }, not);
}

#[test]
fn as_many_words_without_a_label_are_kept_as_were_asked_for() {
    let run = Simulation::new(machines::modern(1)).words(3).run(|| {
        let words: Vec<_> = (0..10).map(Word::new).collect();
        label(&words[9], "last");
        for (number, word) in words.iter().enumerate() {
            for _ in 0..=number {
                word.add(1);
            }
        }
    });
    let words = run.unwrap().statistics.words;
    assert_eq!(words.len(), 4);
    let last = words.iter().find(|word| word.name == "last").unwrap();
    assert!(last.labelled && last.accesses.all == 10);
    assert!(words.iter().all(|word| word.labelled || word.name.starts_with("at 0x")), "{words:?}");
}

#[test]
fn spinning_is_charged_to_the_word_that_is_watched() {
    let run = Simulation::new(machines::modern(2)).words(0).run(|| {
        let flag = Rc::new(Word::new(0));
        label(&flag, "flag");
        let other = {
            let flag = Rc::clone(&flag);
            let body = move || {
                while flag.load() == 0 {
                    inside::watch(flag.address(), u64::MAX);
                }
            };
            inside::spawn(None, None, Box::new(body))
        };
        inside::work(1_000_000);
        flag.store(1);
        inside::join(other);
    });
    let statistics = run.unwrap().statistics;
    let spun = statistics.word("flag").unwrap().spun;
    assert_eq!(spun, statistics.times().of(Activity::Spinning));
    assert!(spun > Time::micros(900), "{spun}");
}

#[test]
fn sleeping_is_charged_to_the_word_that_is_slept_on() {
    let run = Simulation::new(machines::modern(2)).words(0).run(|| {
        let word = Rc::new(Word::new(0));
        label(&word, "word");
        let sleeper = {
            let word = Rc::clone(&word);
            let body = move || {
                let parked = inside::park(word.address(), || word.raw() != 0, u64::MAX);
                assert_eq!(parked, inside::Parked::Woken);
            };
            inside::spawn(None, None, Box::new(body))
        };
        inside::work(1_000_000);
        word.store(1);
        assert_eq!(inside::wake(word.address(), 1), 1);
        inside::join(sleeper);
    });
    let statistics = run.unwrap().statistics;
    let parked = statistics.word("word").unwrap().parked;
    assert!(parked > Time::micros(900), "{parked}");
    // Before it began, it waited to be made.
    assert!(parked <= statistics.threads[1].times.of(Activity::Blocked), "{parked}");
    assert_eq!(statistics.word("word").unwrap().spun, Time::ZERO);
}

#[test]
fn labels_of_foreign_memory_cover_all_of_it() {
    let words: Vec<_> = (0..100).map(Word::new).collect();
    let run = Simulation::new(machines::modern(1)).words(0).run(move || {
        // Touched from the end, so that neighbours are none by number.
        assert_eq!(words.iter().rev().map(Word::load).sum::<u64>(), 4_950);
        inside::label(words.as_ptr().cast(), size_of_val(&*words), "words");
        assert_eq!(words.iter().map(Word::load).sum::<u64>(), 4_950);
    });
    let statistics = run.unwrap().statistics;
    let word = statistics.word("words").unwrap();
    assert_eq!((word.words, word.accesses.all), (100, 200));
}

#[test]
fn tables_are_aligned_and_say_what_was_counted() {
    let run = counters(50, Some(0));
    let text = run.statistics.to_string();
    assert!(text.contains("0 main") && text.contains("shares a line with"), "{text}");
    let tables: Vec<Vec<&str>> =
        text.split("\n\n").skip(1).map(|table| table.lines().collect()).collect();
    assert_eq!(tables.len(), 3);
    for table in &tables[..2] {
        // The last column is set right, so all lines are equally long.
        assert!(table.iter().all(|line| line.len() == table[0].len()), "{text}");
    }
    let column = tables[2][0].find("shares").unwrap();
    let left = tables[2].iter().find(|line| line.starts_with("left")).unwrap();
    assert_eq!(&left[column..], "right");
    assert!(text.lines().all(|line| line.trim_end() == line));
}

#[test]
fn long_lists_end_in_a_count() {
    let run = Simulation::new(machines::modern(4)).run(|| {
        let made: Vec<_> = (0..50).map(|_| inside::spawn(None, None, Box::new(|| ()))).collect();
        made.into_iter().for_each(inside::join);
    });
    let text = run.unwrap().statistics.to_string();
    assert!(text.contains("and 19 more threads"), "{text}");
}

#[test]
fn statistics_survive_json() {
    let statistics = counters(20, Some(2)).statistics;
    let text = serde_json::to_string(&statistics).unwrap();
    assert_eq!(serde_json::from_str::<Statistics>(&text).unwrap(), statistics);
    assert_eq!(serde_json::to_string(&counters(20, Some(2)).statistics).unwrap(), text);
}

#[test]
fn the_bus_is_used_by_what_occupies_it() {
    let run = Simulation::new(machines::symmetry_a(2)).run(|| {
        let word = Word::new(0);
        for _ in 0..100 {
            word.add(1);
        }
    });
    let statistics = run.unwrap().statistics;
    let part = statistics.accesses.occupied.as_secs() / statistics.elapsed.as_secs();
    assert!((statistics.bus_use() - part).abs() < 1e-12 && part > 0.1 && part <= 1.0, "{part}");
    assert_eq!(Statistics::default().bus_use(), 0.0);
}

#[test]
#[should_panic(expected = "for each of 0 times")]
fn rates_per_nothing_are_refused() {
    assert_eq!(Accesses::default().per(0).all, 0.0);
}
