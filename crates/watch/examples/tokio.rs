//! Plants three causes for a worker of tokio that does not get back to its queue, one after the
//! other. Prints a line a second. `records` as an argument: with switch records.
//!
//! `cargo run --release -p stanchion-watch --example tokio [records]`

use std::error::Error;
use std::thread;
use std::time::Duration;

use stanchion_watch::{Cause, TokioHooks, Watch};

mod plants;

use plants::{BUSY, Planted, keep_busy};

/// The time between two lines.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time for which each cause stays, and the pause after it.
const PLANTED: Duration = Duration::from_millis(3_200);

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var_os(BUSY).is_some() {
        keep_busy();
    }
    let with_records = std::env::args().any(|argument| argument == "records");
    let watch = Watch::builder().switch_records(with_records).build();
    for (cause, title) in [
        (Cause::Blocked, "a task reads from a pipe in which nothing comes"),
        (Cause::Computing, "a task computes"),
        (Cause::Preempted, "a process keeps the worker's processor busy"),
    ] {
        println!("planted: {title}");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(2).build()?;
        // The workers park for the first time.
        thread::sleep(Duration::from_millis(50));
        let watching = watch.spawn(INTERVAL, |sample| println!("  {sample}"))?;
        let planted = Planted::spawn(&runtime, cause, &[])?;
        thread::sleep(PLANTED);
        planted.end(&runtime);
        drop(watching);
    }
    Ok(())
}
