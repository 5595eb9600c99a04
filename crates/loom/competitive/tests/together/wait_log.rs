//! Models of the log of single waits: a reader has the words of one wait, and the log has each wait
//! that its sample keeps.

use stanchion_competitive_loom::waits::events::Meanwhile;
use stanchion_competitive_loom::waits::log::{Entry, Header, Log, Wait};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A wait in which all words have the same number.
fn wait(number: u32) -> Wait {
    let time = u64::from(number);
    Wait {
        process: number,
        thread: number,
        start_ns: time,
        length_ns: time,
        name: Some(number),
        waker: number,
        meanwhile: Some(Meanwhile { ran_ns: time, preempted_ns: time, blocked_ns: time }),
    }
}

/// Checks that what is read is one of the waits.
fn check(found: Wait) {
    assert_eq!(found, wait(found.process), "words of several waits");
}

/// A thread writes a wait over another one while a second thread reads.
#[test]
fn a_reader_has_one_wait_of_an_entry_bounded() {
    let model = Model::new().preemptions(3);
    explore("wait_log::a_reader_has_one_wait_of_an_entry_bounded", model, || {
        let entry = Arc::new(Entry::new());
        let reader = {
            let entry = entry.clone();
            thread::spawn(move || {
                if let Some((number, found)) = entry.read() {
                    check(found);
                    assert_eq!(number, found.start_ns, "the number of another wait");
                }
            })
        };
        for number in 1..3 {
            assert!(entry.write(number.into(), |_| true, &wait(number)));
        }
        reader.join().unwrap();
        assert_eq!(entry.read(), Some((2, wait(2))));
    });
}

/// Two threads write into one entry, one after the other: its words are those of the later one.
#[test]
fn an_entry_is_overwritten_as_a_whole() {
    explore("wait_log::an_entry_is_overwritten_as_a_whole", Model::new(), || {
        let entry = Arc::new(Entry::new());
        let other = {
            let entry = entry.clone();
            thread::spawn(move || entry.write(1, |number| number < 1, &wait(1)))
        };
        let is_written = entry.write(2, |number| number < 2, &wait(2));
        let is_other_written = other.join().unwrap();
        assert!(is_written || is_other_written);
        let (number, found) = entry.read().expect("it was written");
        assert_eq!(found, wait(number as u32));
        assert_eq!(number, if is_written { 2 } else { 1 });
    });
}

/// Two threads add to a log that has room, while a third one reads it.
#[test]
fn a_log_with_room_keeps_all_bounded() {
    let model = Model::new().preemptions(2).objects(32);
    explore("wait_log::a_log_with_room_keeps_all_bounded", model, || {
        let shared = Arc::new((Header::new(2), [Entry::new(), Entry::new()]));
        let adds = {
            let shared = shared.clone();
            thread::spawn(move || Log::of(&shared.0, &shared.1).add(&wait(1)))
        };
        let reads = {
            let shared = shared.clone();
            thread::spawn(move || {
                Log::of(&shared.0, &shared.1).gather().waits.into_iter().for_each(check);
            })
        };
        let log = Log::of(&shared.0, &shared.1);
        log.add(&wait(2));
        adds.join().unwrap();
        reads.join().unwrap();
        let mut waits = log.gather().waits;
        waits.sort_unstable_by_key(|wait| wait.start_ns);
        assert_eq!(waits, [wait(1), wait(2)]);
    });
}

/// Two threads add to a log that is full: it has one of the waits at most, and counts all.
#[test]
fn a_full_log_is_never_torn_bounded() {
    let model = Model::new().preemptions(2);
    explore("wait_log::a_full_log_is_never_torn_bounded", model, || {
        let shared = Arc::new((Header::new(1), [Entry::new()]));
        let log = Log::of(&shared.0, &shared.1);
        log.add(&wait(1));
        let adds = {
            let shared = shared.clone();
            thread::spawn(move || Log::of(&shared.0, &shared.1).add(&wait(2)))
        };
        log.add(&wait(3));
        log.gather().waits.into_iter().for_each(check);
        adds.join().unwrap();
        let logged = log.gather();
        assert_eq!(logged.seen, 3);
        assert!(logged.waits.len() <= 1);
        logged.waits.into_iter().for_each(check);
    });
}
