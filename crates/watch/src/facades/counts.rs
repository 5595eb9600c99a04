//! Samples as metrics of the `metrics` facade.

use std::time::Duration;

use metrics::{counter, gauge};

use crate::sample::{Cause, Sample};

/// The causes of stalls. Each has a gauge.
const CAUSES: [Cause; 4] = [Cause::Blocked, Cause::Computing, Cause::Preempted, Cause::Unknown];

/// Metrics.
impl Sample {
    /// Gives the sample to the recorder that the program has installed for the `metrics` facade.
    /// Allocates, and costs some microseconds for each pool and worker.
    ///
    /// - `stanchion_watch_workers`, a gauge by `pool` and `state`;
    /// - `stanchion_watch_stalled_workers`, a gauge by `pool` and `cause`: the stalls that last;
    /// - `stanchion_watch_time_microseconds_total`, a counter by `pool` and `state` (`parked`,
    ///   `running`, `ready`, `blocked`);
    /// - `stanchion_watch_parks_total` and `stanchion_watch_polls_total`, counters by `pool`.
    ///
    /// Give each sample once: the counters grow by what was done since the last sample.
    ///
    /// ```
    /// use std::time::Duration;
    /// let watch = stanchion_watch::Watch::new();
    /// let watching = watch.spawn(Duration::from_secs(1), |sample| sample.record_metrics())?;
    /// # drop(watching);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn record_metrics(&self) {
        for (pool, states) in self.pools() {
            for (state, count) in states {
                gauge!("stanchion_watch_workers", "pool" => pool.name(), "state" => state)
                    .set(count as f64);
            }
            for cause in CAUSES {
                let lasts = self.stalls().filter(|(worker, stall)| {
                    worker.pool == pool && stall.cause == cause && !stall.is_over
                });
                gauge!(
                    "stanchion_watch_stalled_workers",
                    "pool" => pool.name(),
                    "cause" => cause.name()
                )
                .set(lasts.count() as f64);
            }
        }
        for worker in &self.workers {
            let pool = worker.pool.name();
            for (state, time) in [
                ("parked", worker.parked),
                ("running", worker.parts.running),
                ("ready", worker.parts.ready),
                ("blocked", worker.parts.blocked),
            ] {
                counter!(
                    "stanchion_watch_time_microseconds_total",
                    "pool" => pool,
                    "state" => state
                )
                .increment(microseconds(time));
            }
            counter!("stanchion_watch_parks_total", "pool" => pool).increment(worker.parks);
            counter!("stanchion_watch_polls_total", "pool" => pool).increment(worker.polls);
        }
    }
}

/// Returns a time in microseconds.
fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
