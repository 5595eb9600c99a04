//! Samples reach the facades with the values that they have.
#![cfg(all(feature = "metrics", feature = "tracing", feature = "tokio"))]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use stanchion_watch::{Sample, TokioHooks, Watch};
use tokio::runtime::Builder;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber, subscriber};

/// Samples a runtime of one worker, of which a task is blocked.
fn blocked() -> Sample {
    let watch = Watch::builder().threshold(Duration::from_millis(1)).build();
    let mut builder = Builder::new_multi_thread();
    let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(1).build().unwrap();
    let mut sampler = watch.sampler();
    while sampler.sample().workers.is_empty() {
        std::thread::yield_now();
    }
    let (end, ended) = mpsc::channel::<()>();
    runtime.spawn(async move { _ = ended.recv() });
    loop {
        let sample = sampler.sample();
        if sample.stalls().any(|(_, stall)| !stall.is_over) {
            drop(end);
            return sample;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The metrics by name and labels. A gauge has the bits of its number.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn entry(&self, key: &Key) -> Arc<AtomicU64> {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::clone(self.0.lock().unwrap().entry(name).or_default())
    }

    fn value(&self, name: &str) -> u64 {
        self.0.lock().unwrap()[name].load(Ordering::Relaxed)
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.entry(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.entry(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn metrics_have_the_values_of_the_sample() {
    let sample = blocked();
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        sample.record_metrics();
        sample.record_metrics();
    });
    let worker = &sample.workers[0];
    let state = format!("stanchion_watch_workers pool=tokio state={}", worker.state.name());
    assert_eq!(f64::from_bits(kept.value(&state)), 1.0);
    let parked = "stanchion_watch_workers pool=tokio state=parked";
    assert_eq!(f64::from_bits(kept.value(parked)), 0.0);
    let (_, stall) = sample.stalls().last().unwrap();
    let cause = format!("stanchion_watch_stalled_workers pool=tokio cause={}", stall.cause);
    assert_eq!(f64::from_bits(kept.value(&cause)), 1.0);
    // Counters were given twice.
    let time = "stanchion_watch_time_microseconds_total pool=tokio state=blocked";
    let blocked = u64::try_from(worker.parts.blocked.as_micros()).unwrap();
    assert_eq!(kept.value(time), 2 * blocked);
    assert_eq!(kept.value("stanchion_watch_parks_total pool=tokio"), 2 * worker.parks);
}

/// The fields of all events of one target.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

/// The fields of an event.
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "stanchion_watch" && *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
}

#[test]
fn each_stall_is_an_event() {
    let sample = blocked();
    let events = Events::default();
    subscriber::with_default(events.clone(), || sample.emit_events());
    let events = events.0.lock().unwrap();
    assert_eq!(events.len(), sample.stalls().count());
    let (worker, stall) = sample.stalls().last().unwrap();
    let fields = events.last().unwrap();
    assert_eq!(fields["pool"], "\"tokio\"");
    assert_eq!(fields["cause"], format!("{:?}", stall.cause.name()));
    assert_eq!(fields["is_over"], "false");
    assert_eq!(fields["message"], format!("{} {stall}", worker.name));
    assert_eq!(fields["blocked_ms"], stall.parts.blocked.as_millis().to_string());
    assert_eq!(fields.get("thread").cloned(), worker.thread.map(|thread| thread.to_string()));
    assert_eq!(fields.contains_key("task"), cfg!(tokio_unstable));
}
