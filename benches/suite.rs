//! The main function of each bench, and the settings that all benches share.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, Criterion, SamplingMode};

/// Set once a benchmark runs.
static HAS_MEASURED: AtomicBool = AtomicBool::new(false);

/// Runs all groups of a bench with the options of the command line, as `criterion_main!` does.
/// Says before how long all of it takes, and behind if no benchmark matches the filter.
///
/// Criterion draws the distributions of all resamples: of its default of 100,000 in 3 s for each
/// benchmark, which is longer than the measurement. For 10 samples, a tenth of them is enough.
pub(crate) fn main(name: &str, takes: &str, groups: &[fn(&mut Criterion)]) {
    let lists = has_argument("--list");
    if !lists {
        eprintln!("{name}: all of it takes {takes}");
    }
    let resamples = if has_argument("--quick") { 2_000 } else { 10_000 };
    let mut criterion = Criterion::default().nresamples(resamples).configure_from_args();
    for group in groups {
        group(&mut criterion);
    }
    criterion.final_summary();
    if !lists && !HAS_MEASURED.load(Relaxed) {
        eprintln!(
            "{name}: no benchmark matches; `cargo bench -p benches --bench {name} -- --list` \
             lists all"
        );
    }
}

pub(crate) fn has_argument(argument: &str) -> bool {
    std::env::args().skip(1).any(|given| given == argument)
}

/// Adds a benchmark to a group. Criterion calls `body` only if the filter matches.
pub(crate) fn bench(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut body: impl FnMut(&mut Bencher<'_>),
) {
    group.bench_function(name, |bencher| {
        HAS_MEASURED.store(true, Relaxed);
        body(bencher);
    });
}

/// Sets a group up for windows: every sample takes one, however many iterations are asked for.
///
/// So the measurement time does not matter, with one exception. With `--quick`, a benchmark ends
/// when its windows agree, or at the latest when the measurement time is over.
pub(crate) fn windows(group: &mut BenchmarkGroup<'_, WallTime>) {
    let quick = has_argument("--quick");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100));
    group.measurement_time(Duration::from_millis(if quick { 400 } else { 3_000 }));
}
