//! A timeline as a trace that trace viewers read: Perfetto, Chrome's own, speedscope.
//!
//! The format is the JSON of Chrome's "Trace Event Format": complete events (`"ph":"X"`) with begin
//! and duration in microseconds, here with six decimals, so that no picosecond is lost. Threads are
//! the tracks of one process of the trace, processors those of another.

use super::{Span, Timeline};
use crate::Time;
use crate::statistics::Statistics;
use core::fmt::Write;

/// The trace's processes.
const THREADS: usize = 1;
const PROCESSORS: usize = 2;

impl Timeline {
    /// Returns the timeline as trace-event JSON, to be opened with
    /// [Perfetto](https://ui.perfetto.dev) or `chrome://tracing`.
    ///
    /// There is a track for each thread, with its activity and its processor, and one for each
    /// processor, with its thread. There is a line of text for each [span](Self::spans): ask for it
    /// of short runs. The same run gives the same text.
    ///
    /// ```
    /// use stanchion_simulator::{Simulation, inside, machines};
    ///
    /// let run = Simulation::new(machines::modern(2)).timeline().run(|| inside::work(1_500))?;
    /// let trace = run.timeline.expect("it was asked for").chrome(&run.statistics);
    /// let span = r#"{"name":"useful","pid":1,"tid":0,"ph":"X","ts":0.000000,"dur":1.500000"#;
    /// assert!(trace.contains(span));
    /// # Ok::<(), stanchion_simulator::Failure>(())
    /// ```
    #[must_use]
    pub fn chrome(&self, statistics: &Statistics) -> String {
        let mut trace = Trace::default();
        trace.name("process_name", (THREADS, 0), "threads");
        trace.name("process_name", (PROCESSORS, 0), "processors");
        let names: Vec<_> =
            (0..statistics.threads.len()).map(|thread| statistics.thread_name(thread)).collect();
        for (thread, name) in names.iter().enumerate() {
            trace.name("thread_name", (THREADS, thread), name);
        }
        for processor in 0..statistics.processors.len() {
            let name = format!("processor {processor}");
            trace.name("thread_name", (PROCESSORS, processor), &name);
        }
        for span in &self.spans {
            let arguments =
                span.processor.map(|processor| format!(",\"args\":{{\"processor\":{processor}}}"));
            let name = span.activity.name();
            trace.event(name, (THREADS, span.thread), span, &arguments.unwrap_or_default());
        }
        for occupation in self.occupations() {
            let track = (PROCESSORS, occupation.processor.unwrap_or_default());
            let stranger = occupation.thread.to_string();
            let name = names.get(occupation.thread).unwrap_or(&stranger);
            trace.event(name, track, &occupation, "");
        }
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", trace.entries)
    }

    /// Returns the occupations of processors, in order of processor and time: neighbouring spans of
    /// one thread are one.
    fn occupations(&self) -> Vec<Span> {
        let mut spans: Vec<Span> =
            self.spans.iter().filter(|span| span.processor.is_some()).copied().collect();
        spans.sort_by_key(|span| (span.processor, span.start));
        spans.dedup_by(|next, last| {
            let key = |span: &Span, seam: Time| (span.processor, span.thread, seam);
            let joined = key(last, last.end) == key(next, next.start);
            if joined {
                last.end = next.end;
            }
            joined
        });
        spans
    }
}

/// The entries so far, with commas between them.
#[derive(Default)]
struct Trace {
    /// The entries so far.
    entries: String,
}

impl Trace {
    /// Names a process or a track.
    fn name(&mut self, what: &str, track: (usize, usize), name: &str) {
        let name = quoted(name);
        let rest = format!("\"ph\":\"M\",\"args\":{{\"name\":{name}}}");
        self.entry(what, track, &rest);
    }

    fn event(&mut self, name: &str, track: (usize, usize), span: &Span, more: &str) {
        let (start, length) = (micros(span.start), micros(span.end.since(span.start)));
        let rest = format!("\"ph\":\"X\",\"ts\":{start},\"dur\":{length}{more}");
        self.entry(name, track, &rest);
    }

    fn entry(&mut self, name: &str, (process, track): (usize, usize), rest: &str) {
        let comma = if self.entries.is_empty() { "" } else { ",\n" };
        let name = quoted(name);
        write!(self.entries, "{comma}{{\"name\":{name},\"pid\":{process},\"tid\":{track},{rest}}}")
            .expect("a string takes all");
    }
}

/// Microseconds, every picosecond of them.
fn micros(time: Time) -> String {
    let picos = time.as_picos();
    format!("{}.{:06}", picos / 1_000_000, picos % 1_000_000)
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}
