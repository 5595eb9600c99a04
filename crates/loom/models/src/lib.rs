//! The parts that the models of several twins share.

pub mod brief;
pub mod interrupts;
mod lock;
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub mod stacks;

use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};

pub use lock::Lock;

/// Checks `body`, and prints `model NAME: N executions`.
pub fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// Calls `body` with what is `shared`, on another thread of the model.
pub fn beside<T: 'static, R: 'static>(
    shared: &Arc<T>,
    body: impl FnOnce(&T) -> R + 'static,
) -> thread::JoinHandle<R> {
    let shared = shared.clone();
    thread::spawn(move || body(&shared))
}
