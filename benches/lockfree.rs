//! The structures of `stanchion-lockfree` beside their peers.

use criterion::{Criterion, criterion_group, criterion_main};

fn queues(_criterion: &mut Criterion) {}

criterion_group!(benches, queues);
criterion_main!(benches);
