//! Stalls as events of the `tracing` facade.

use std::time::Duration;

use tracing::warn;

use crate::sample::Sample;

/// Events.
impl Sample {
    /// Emits an event of level `WARN` for each stall of the sample, with the target
    /// `stanchion_watch`. Its fields are `pool`, `worker`, `thread`, `cause`, `awake_ms`,
    /// `running_ms`, `ready_ms`, `blocked_ms`, `blocked_in`, `task`, `spawned_at` and `is_over`.
    /// Allocates.
    ///
    /// ```
    /// use std::time::Duration;
    /// let watch = stanchion_watch::Watch::new();
    /// let watching = watch.spawn(Duration::from_secs(1), |sample| sample.emit_events())?;
    /// # drop(watching);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn emit_events(&self) {
        for (worker, stall) in self.stalls() {
            warn!(
                target: "stanchion_watch",
                pool = worker.pool.name(),
                worker = worker.name,
                thread = worker.thread,
                cause = stall.cause.name(),
                awake_ms = milliseconds(stall.awake),
                running_ms = milliseconds(stall.parts.running),
                ready_ms = milliseconds(stall.parts.ready),
                blocked_ms = milliseconds(stall.parts.blocked),
                blocked_in = stall.blocked_in.map(tracing::field::display),
                task = stall.task.map(|task| task.id),
                spawned_at = stall.task.map(|task| tracing::field::display(task.spawned_at)),
                is_over = stall.is_over,
                "{} {stall}",
                worker.name,
            );
        }
    }
}

/// Returns a time in milliseconds.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
