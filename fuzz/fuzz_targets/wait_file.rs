//! Gives any bytes to the readers of recorded waits, of single waits and of thresholds. They never
//! panic. They write an accepted input so that it reads the same again.
//!
//! `cargo +nightly fuzz run wait_file`. The same property runs over changed and cut recordings in
//! every `cargo test` (`crates/competitive/tests/together/wait_files.rs`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use stanchion_competitive::waits::events::Events;
use stanchion_competitive::waits::{Recording, Thresholds};

fuzz_target!(|bytes: &[u8]| {
    match Recording::from_json(bytes) {
        Err(error) => assert!(error.line() >= 1 && error.to_string().len() < 4_096, "{error}"),
        Ok(recording) => {
            let written = recording.to_json();
            assert_eq!(
                Recording::from_json(written.as_bytes()).as_ref(),
                Ok(&recording),
                "{written}"
            );
            let counts: u64 = recording.locks.iter().map(|(_, waits)| waits.count()).sum();
            assert_eq!(recording.all().count(), counts);
            let _ = recording.table();
            for (_, waits) in &recording.locks {
                let _ = waits.table();
                assert_eq!(waits.points().map(|(_, count)| count).sum::<u64>(), waits.count());
            }
        }
    }
    match Events::from_json(bytes) {
        Err(error) => assert!(error.line() >= 1 && error.to_string().len() < 4_096, "{error}"),
        Ok(None) => {}
        Ok(Some(events)) => {
            let _ = events.to_json();
            for wait in &events.waits {
                assert!(events.thread_of(wait).is_some(), "{wait:?}");
                assert_eq!(wait.waker.is_some(), events.waker_of(wait).is_some());
            }
        }
    }
    match Thresholds::from_json(bytes) {
        Err(error) => assert!(error.line() >= 1 && error.to_string().len() < 4_096, "{error}"),
        Ok(thresholds) => {
            let written = thresholds.to_json();
            assert_eq!(
                Thresholds::from_json(written.as_bytes()).as_ref(),
                Ok(&thresholds),
                "{written}"
            );
        }
    }
});
