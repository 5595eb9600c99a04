//! Single waits as a trace that ui.perfetto.dev and chrome://tracing read: JSON in the Trace Event
//! Format.
//!
//! - A wait is a complete event (`X`) of its thread.
//! - A waker has a complete event of the last nanosecond of the wait. An arrow leads from there to
//!   the wait: a flow's beginning (`s`) and end (`f`) with one number.
//! - Names of processes and threads are metadata (`M`).
//!
//! Times are microseconds with three decimals, so nanoseconds are exact.

use std::fmt::Write as _;

use serde_json::Value;
use stanchion_competitive::waits::events::{Event, Events, Thread};

use super::recorded::Recorded;
use super::timeline::{end, name};

/// The most waits of a trace: a browser cannot take many more.
const MOST: usize = 1_000_000;

/// A trace.
pub(super) struct Trace {
    /// Its text.
    pub(super) text: String,
    /// The number of waits that are too many for it: the shortest ones.
    pub(super) left_out: usize,
}

/// Returns the trace of a recording with single waits.
pub(super) fn trace(recorded: &Recorded, events: &Events) -> Trace {
    let mut trace = Writer {
        text: String::from("{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["),
        is_first: true,
    };
    metadata(&mut trace, recorded, events);
    let least = least(events);
    let (mut flows, mut written) = (0_u64, 0);
    for wait in &events.waits {
        if wait.length_ns < least || written == MOST {
            continue;
        }
        written += 1;
        let Some(thread) = events.thread_of(wait) else { continue };
        slice(&mut trace, recorded, events, wait, thread);
        let waker = events.waker_of(wait).filter(|_| wait.waker != Some(wait.thread));
        if let Some(waker) = waker.filter(|_| wait.length_ns > 0) {
            flows += 1;
            flow(&mut trace, flows, wait, (waker, thread));
        }
    }
    let Writer { mut text, .. } = trace;
    text.push_str("\n]}\n");
    Trace { text, left_out: events.waits.len() - written }
}

/// Returns the length of the shortest waits that there is room for.
fn least(events: &Events) -> u64 {
    if events.waits.len() <= MOST {
        return 0;
    }
    let mut lengths: Vec<u64> = events.waits.iter().map(|wait| wait.length_ns).collect();
    let (_, &mut least, _) = lengths.select_nth_unstable_by(MOST - 1, |one, other| other.cmp(one));
    least
}

/// Writes the names of the program and its threads.
fn metadata(trace: &mut Writer, recorded: &Recorded, events: &Events) {
    let mut processes: Vec<u32> = events.threads.iter().map(|thread| thread.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let program = quoted(&recorded.profile.program);
    for process in processes {
        trace.add(format_args!(
            "{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {process}, \"args\": {{\"name\": {program}}}}}"
        ));
    }
    for thread in &events.threads {
        let (name, Thread { process, thread, .. }) = (quoted(&name(thread)), thread);
        trace.add(format_args!(
            "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {process}, \"tid\": {thread}, \"args\": {{\"name\": {name}}}}}"
        ));
    }
}

/// Writes a wait.
fn slice(trace: &mut Writer, recorded: &Recorded, events: &Events, wait: &Event, thread: &Thread) {
    let (class, of) = recorded.of(wait);
    let mut arguments = String::new();
    if let Some(waker) = events.waker_of(wait) {
        // Writing to a string does not fail.
        let _ = write!(arguments, "\"waker\": {}", quoted(&name(waker)));
    }
    if let Some(times) = wait.meanwhile {
        let _ = write!(
            arguments,
            ", \"waker ran ns\": {}, \"waker preempted ns\": {}, \"waker blocked ns\": {}",
            times.ran_ns, times.preempted_ns, times.blocked_ns
        );
    }
    trace.add(format_args!(
        "{{\"ph\": \"X\", \"name\": {}, \"cat\": {}, \"ts\": {}, \"dur\": {}, \"pid\": {}, \"tid\": {}, \"args\": {{{arguments}}}}}",
        quoted(of),
        quoted(class),
        micros(wait.start_ns),
        micros(wait.length_ns),
        thread.process,
        thread.thread
    ));
}

/// Writes an arrow from the waker to the wait, at the last nanosecond of the wait: later it has
/// ended, and the arrow would lead to what comes next.
fn flow(trace: &mut Writer, number: u64, wait: &Event, (waker, waiter): (&Thread, &Thread)) {
    let at = micros(end(wait).saturating_sub(1));
    trace.add(format_args!(
        "{{\"ph\": \"X\", \"name\": {}, \"cat\": \"wake\", \"ts\": {at}, \"dur\": 0.001, \"pid\": {}, \"tid\": {}}}",
        quoted(&format!("wakes {}", name(waiter))),
        waker.process,
        waker.thread
    ));
    for (phase, thread) in [("\"s\"", waker), ("\"f\", \"bp\": \"e\"", waiter)] {
        trace.add(format_args!(
            "{{\"ph\": {phase}, \"id\": {number}, \"name\": \"wake\", \"cat\": \"wake\", \"ts\": {at}, \"pid\": {}, \"tid\": {}}}",
            thread.process, thread.thread
        ));
    }
}

/// A list of events that grows.
struct Writer {
    /// The text.
    text: String,
    /// True if no event was written.
    is_first: bool,
}

impl Writer {
    /// Adds an event.
    fn add(&mut self, event: std::fmt::Arguments<'_>) {
        self.text.push_str(if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" });
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(event);
    }
}

/// Formats nanoseconds as microseconds.
fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1_000, nanos % 1_000)
}

/// Formats a text as JSON has it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::recorded::tests::{events, example, read, text};
    use super::*;

    /// Returns the events of a trace, which is JSON.
    fn list(recorded: &Recorded) -> Vec<Value> {
        let trace = trace(recorded, recorded.events.as_ref().unwrap());
        assert_eq!(trace.left_out, 0);
        let trace: Value = serde_json::from_str(&trace.text).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    /// Returns the events of one phase.
    fn phase<'l>(list: &'l [Value], phase: &str) -> Vec<&'l Value> {
        list.iter().filter(|event| event["ph"] == phase).collect()
    }

    #[test]
    fn a_wait_is_a_complete_event_with_an_arrow_from_its_waker() {
        let list = list(&example());
        let names: Vec<_> = phase(&list, "M").iter().map(|event| &event["args"]["name"]).collect();
        assert_eq!(names, ["s", "secret-main", "<b>secret</b>"]);
        let complete = phase(&list, "X");
        let first = complete[0];
        assert_eq!(first["name"], "s: std Mutex in get");
        assert_eq!((&first["ts"], &first["dur"]), (&100.0.into(), &20.0.into()));
        assert_eq!((&first["tid"], &first["args"]["waker ran ns"]), (&72.into(), &12_000.into()));
        let wake = complete[1];
        assert_eq!((&wake["name"], &wake["tid"]), (&"wakes <b>secret</b>".into(), &71.into()));
        assert_eq!(complete.len(), 4);
        let (from, to) = (phase(&list, "s"), phase(&list, "f"));
        assert_eq!((from.len(), to.len()), (1, 1));
        assert_eq!((&from[0]["tid"], &to[0]["tid"]), (&71.into(), &72.into()));
    }

    /// Each flow has one beginning and one end, which lie in a complete event of their thread.
    #[test]
    fn flows_are_balanced_and_lie_in_events() {
        let mut events = events();
        let wait = events.waits[0];
        let waits = (0..2_000_u64).map(|nth| Event {
            start_ns: nth * 997,
            // Some have no length, and some threads end a wait of their own.
            length_ns: nth * 31 % 900,
            thread: (nth % 2) as u32,
            waker: [None, Some(0), Some(1)][nth as usize % 3],
            meanwhile: None,
            ..wait
        });
        events.waits = waits.collect();
        events.seen = 2_000;
        let recorded = read(&text(&events));
        let list = list(&recorded);
        let nanos = |value: &Value| (value.as_f64().unwrap() * 1e3).round() as u64;
        let mut slices = BTreeMap::<String, Vec<(u64, u64)>>::new();
        for event in phase(&list, "X") {
            let start = nanos(&event["ts"]);
            slices
                .entry(event["tid"].to_string())
                .or_default()
                .push((start, start + nanos(&event["dur"])));
        }
        let (from, to) = (phase(&list, "s"), phase(&list, "f"));
        let expected = recorded.events.as_ref().unwrap().waits.iter().filter(|wait| {
            wait.length_ns > 0 && wait.waker.is_some_and(|waker| waker != wait.thread)
        });
        assert_eq!(from.len(), expected.count());
        assert_eq!(from.len(), to.len());
        for (number, (from, to)) in (1..).zip(from.iter().zip(&to)) {
            assert_eq!((&from["id"], &to["id"]), (&Value::from(number), &Value::from(number)));
            for end in [from, to] {
                let at = nanos(&end["ts"]);
                let of = &slices[&end["tid"].to_string()];
                assert!(of.iter().any(|slice| (slice.0..slice.1).contains(&at)), "{end}");
            }
        }
    }

    #[test]
    fn without_names_a_trace_tells_nothing() {
        let mut recorded = example();
        recorded.hide_names();
        let text = trace(&recorded, recorded.events.as_ref().unwrap()).text;
        assert!(
            !text.contains("secret") && !text.contains("in get") && !text.contains("71"),
            "{text}"
        );
        assert!(
            text.contains("\"name\": \"thread 2\"") && text.contains("std Mutex in function 3")
        );
    }
}
