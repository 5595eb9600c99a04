//! The summary at the end. It goes to standard error, because standard output is the program's.

use std::path::Path;
use std::time::Duration;

use stanchion_competitive::waits::events::Events;
use stanchion_competitive::waits::shared::Gathered;
use stanchion_competitive::waits::{Distribution, Loss, Recording};

use super::calls::Class;
use super::names::{self, Named};
use super::run::Ended;
use stanchion_study::command::stanchion;
use stanchion_study::output::Output;
use stanchion_study::units::{count, grouped, grouped_count, percent};

/// Why there is nothing to write, if there is nothing.
/// `is_left` is true if threads still waited at the end.
pub(super) fn nothing(gathered: &Gathered, program: &Path, is_left: bool) -> Option<String> {
    let program = program.display();
    if gathered.processes == 0 {
        Some(format!(
            "the shim was not loaded into {program}; has it file capabilities, or does it or a wrapper clear the environment?"
        ))
    } else if !gathered.locks.is_empty() || gathered.nameless > 0 {
        None
    } else if gathered.lockers == 0 {
        Some(format!(
            "{program} took no lock of the C library, and none of its threads waited by `syscall`. Programs in Go wait in ways that the \
             shim does not see"
        ))
    } else if is_left {
        Some(format!("no wait of {program} ended before the program did"))
    } else {
        Some(format!(
            "{program} took locks and never had to wait for one. Give it more threads or more work"
        ))
    }
}

fn processes(number: u64) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{} processes", grouped(number)) }
}

/// The number of locks that are shown, and of other waits.
const SHOWN: usize = 12;

/// The busiest locks, the other waits, and where the rest is.
pub(super) fn print(
    recording: &Recording,
    named: &Named,
    gathered: &Gathered,
    events: Option<(&Events, Result<bool, &String>)>,
    output: &Path,
    ended: Ended,
) {
    let line = |text: std::fmt::Arguments<'_>| Output::Stderr.line(text);
    say_signal(&recording.program, ended);
    if recording.locks.is_empty() && recording.overflow == 0 {
        let program = &recording.program;
        line(format_args!("stanchion: no thread of {program} had to wait for a lock"));
    } else {
        locks(recording, gathered);
    }
    for text in others(named) {
        line(format_args!("{text}"));
    }
    for loss in &gathered.losses {
        line(format_args!("{}", words(*loss)));
    }
    if let Some((events, switches)) = events {
        for text in singles(events, switches) {
            line(format_args!("{text}"));
        }
    }
    line(format_args!(
        "written to {output}; `{stanchion} report {output}` shows where threads waited, and `{stanchion} advise {output}` what each \
         policy would have cost",
        output = output.display(),
        stanchion = stanchion()
    ));
}

/// Prints the busiest locks.
fn locks(recording: &Recording, gathered: &Gathered) {
    let line = |text: std::fmt::Arguments<'_>| Output::Stderr.line(text);
    let all = recording.all();
    line(format_args!(
        "stanchion: {} for {} of {}, in {}; {} blocked",
        grouped_count(all.count(), "wait"),
        count(recording.locks.len(), "lock"),
        recording.program,
        processes(gathered.lockers),
        grouped(all.blocked()),
    ));
    let mut busiest = recording.clone();
    busiest.locks.sort_by_key(|lock| std::cmp::Reverse(lock.1.total_ns()));
    let more = busiest.locks.len().saturating_sub(SHOWN);
    busiest.locks.truncate(SHOWN);
    for text in busiest.table().lines() {
        line(format_args!("{text}"));
    }
    if more > 0 {
        line(format_args!("and {more} more"));
    }
}

/// Prints the signal that ended the program, if one did.
fn say_signal(program: &dyn std::fmt::Display, ended: Ended) {
    if let Some(signal) = ended.signal() {
        Output::Stderr.line(format_args!("stanchion: {program} was ended by signal {signal}"));
    }
}

/// Returns lines on the single waits that were kept, if there are any. `switches` is false if
/// switch records are off, and the reason if they were refused.
fn singles(events: &Events, switches: Result<bool, &String>) -> Vec<String> {
    let kept = events.waits.len();
    if kept == 0 {
        return Vec::new();
    }
    let share = |number: usize, of: usize| percent(number as f64 / of.max(1) as f64);
    let woken = events.waits.iter().filter(|wait| wait.waker.is_some()).count();
    let covered = events.waits.iter().filter(|wait| wait.meanwhile.is_some()).count();
    let all = if kept as u64 == events.seen {
        format!("all {}", grouped_count(events.seen, "wait"))
    } else {
        format!("{} of {}", grouped(kept as u64), grouped_count(events.seen, "wait"))
    };
    let waker = format!("single waits: {all}; the waker of {} is known", share(woken, kept));
    if switches == Ok(false) {
        return vec![format!("{waker}, and not what it did meanwhile (--switches=off)")];
    }
    let mut lines =
        vec![format!("{waker}, and what it did meanwhile for {} of these", share(covered, woken))];
    if woken > 0
        && covered == 0
        && let Err(refused) = switches
    {
        lines.push(format!("what wakers did is not known without switch records: {refused}"));
    }
    lines
}

/// Returns lines on the waits that are not for locks, the longest together first.
fn others(named: &Named) -> Vec<String> {
    let mut all: Vec<_> = named.others.iter().collect();
    let total = |waits: &Distribution| Duration::from_nanos(waits.total_ns());
    all.sort_by_key(|(_, _, waits)| std::cmp::Reverse(waits.total_ns()));
    let mut lines = Vec::new();
    if !all.is_empty() {
        lines.push("Waits that are not for locks:".to_owned());
    }
    for (class, name, waits) in all.iter().take(SHOWN) {
        let (word, number) = (class.word(), grouped(waits.count()));
        lines.push(format!("  {word:9} {number:>9} {:>10.1?}  {name}", total(waits)));
    }
    if all.len() > SHOWN {
        lines.push(format!("  and {} more", all.len() - SHOWN));
    }
    let of_class = |class| named.others.iter().filter(move |(of, ..)| *of == class);
    let unknown: u64 = of_class(Class::Unknown).map(|(.., waits)| waits.total_ns()).sum();
    let known: u64 = named.locks.iter().map(|(_, waits)| waits.total_ns()).sum();
    let rest: u64 = named.others.iter().map(|(.., waits)| waits.total_ns()).sum();
    if unknown > 0 {
        let share = percent(unknown as f64 / (known + rest) as f64);
        lines.push(format!("{share} of the waiting time is of no known way to wait"));
    }
    if named.unwalked > 0 {
        let counts = |waits: &Distribution| waits.count();
        let locks: u64 = named.locks.iter().map(|(_, waits)| counts(waits)).sum();
        let others: u64 = named.others.iter().map(|(.., waits)| counts(waits)).sum();
        // A look is counted before it is known whether the thread waits.
        let all = (locks + others).max(1);
        let share = percent(named.unwalked.min(all) as f64 / all as f64);
        lines.push(format!(
            "{share} of the waits came too fast for a look at their calls: each has the name that \
             was found last at its place of the stack"
        ));
    }
    if named.nameless {
        lines.push(names::HINT.to_owned());
    }
    lines
}

/// Returns the sentence on a loss.
fn words(loss: Loss) -> &'static str {
    match loss {
        Loss::Filter => {
            "A process installed a filter of system calls. From then on it was recorded without system calls of its own: paths of calls end at \
             the first call, and waits of more than 20 µs count as blocked"
        }
        Loss::Mappings => {
            "The list of mappings of a process could not be read: locks of libraries may have another path"
        }
        Loss::Stack => {
            "The stack of a thread could not be read: paths of calls end at the first call, and the program's functions are missing"
        }
        Loss::Switches => {
            "The switches of a thread could not be read: waits of more than 20 µs count as blocked"
        }
        Loss::Numbers => {
            "The number of a thread could not be read: its waits were not shown while they lasted"
        }
        _ => "Less is known of some waits, for a reason that this version does not know",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_competitive::waits::Observation;
    use stanchion_competitive::waits::events::Event;

    #[test]
    fn single_waits_are_told_with_what_is_known_of_their_wakers() {
        let wait = |waker| Event {
            start_ns: 1,
            length_ns: 2,
            thread: 0,
            lock: None,
            path: None,
            waker,
            meanwhile: None,
        };
        let reason = "a reason".to_owned();
        let refused = Err(&reason);
        let mut events = Events { seen: 4, ..Events::default() };
        assert!(singles(&events, refused).is_empty());
        events.waits = vec![wait(None), wait(Some(0))];
        let lines = singles(&events, refused);
        assert!(lines[0].starts_with("single waits: 2 of 4 waits; the waker of 50"), "{lines:?}");
        assert!(
            lines[0].contains("meanwhile for 0") && lines[0].ends_with("of these"),
            "{lines:?}"
        );
        assert!(lines[1].ends_with("without switch records: a reason"), "{lines:?}");
        assert_eq!(singles(&events, Ok(true)).len(), 1);
        let lines = singles(&events, Ok(false));
        assert!(lines.len() == 1 && lines[0].ends_with("(--switches=off)"), "{lines:?}");
        events.seen = 2;
        assert!(singles(&events, refused)[0].contains("all 2 waits"));
    }

    #[test]
    fn other_waits_have_a_table_of_their_own() {
        let waits = |number: u64, length_ns| {
            let mut waits = Distribution::new(400);
            let wait = Observation { length_ns, ..Observation::default() };
            (0..number).for_each(|_| waits.add(&wait));
            waits
        };
        let named = |others, nameless| Named {
            locks: vec![("x: std Mutex in work".to_owned(), waits(3, 1_000))],
            others,
            paths: Vec::new(),
            indices: std::collections::BTreeMap::new(),
            nameless,
            unwalked: 1,
        };
        assert_eq!(others(&named(Vec::new(), false)).len(), 1);
        let park = (Class::Park, "x: thread::park in rest".to_owned(), waits(2, 500));
        let unknown = (Class::Unknown, "x: futex in 0x1f".to_owned(), waits(1, 4_000));
        let lines = others(&named(vec![park, unknown], true));
        assert!(lines[1].contains("unknown") && lines[1].contains("4.0µs"), "{lines:?}");
        assert!(lines[2].contains("park") && lines[2].ends_with("thread::park in rest"));
        assert!(lines[3].starts_with("50.0"), "{lines:?}");
        // One of the six.
        assert!(lines[4].starts_with("16.7"), "{lines:?}");
        assert!(lines[5].contains("without `strip`"), "{lines:?}");
    }
}
