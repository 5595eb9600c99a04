//! Takes any bytes as operations on every structure and on a model of it. Both answer the same, and
//! every value is dropped once.
//!
//! `cargo xtask fuzz lockfree_operations` runs for a while on the stable compiler, as CI does. For
//! long runs:
//!
//! ```text
//! cargo +nightly fuzz run lockfree_operations \
//!     fuzz/corpus/lockfree_operations fuzz/seeds/lockfree_operations
//! ```
//!
//! The same property runs over random operations in every `cargo test`
//! (`crates/lockfree/tests/state_machine.rs`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use stanchion_lockfree as lockfree;

#[path = "../../crates/lockfree/tests/common/machine.rs"]
mod machine;
#[path = "../../crates/lockfree/tests/common/structures.rs"]
mod structures;
#[path = "../../crates/lockfree/tests/common/values.rs"]
mod values;

use machine::{Operation, run};
use structures::{Family, all_structures};

macro_rules! tests {
    ([$kind:ident $new:ident $room:tt $tests:ident]
        $({ $row:ident: $type:ty, $($rest:tt)* })+) => {
        $tests.extend([$(test::<structures::$row> as fn(&[Operation], usize)),+]);
    };
}

fn test<F: Family>(operations: &[Operation], rest: usize) {
    run::<F>(operations, rest);
}

// The first byte selects the structure, and the second the number of values that its iterator
// yields. Each operation after that is two bytes.
fuzz_target!(|bytes: &[u8]| {
    let [which, rest, operations @ ..] = bytes else { return };
    let mut tests = Vec::new();
    all_structures!(tests tests);
    let operations: Vec<_> = operations
        .as_chunks()
        .0
        .iter()
        .map(|[kind, number]| Operation::of(*kind, *number))
        .collect();
    tests[usize::from(*which) % tests.len()](&operations, usize::from(*rest));
});
