//! Helpers of several tests.

// Each test is a program of its own and uses some of it.
#![allow(dead_code)]

pub(crate) mod faulty;
pub(crate) mod structures;

use proptest::prelude::*;
use std::fmt::Write as _;

/// A random circuit: a right netlist of up to 6 inputs, 6 flip-flops and 40 gates, in any order of
/// lines, with every kind of gate.
pub(crate) fn random_netlist() -> impl Strategy<Value = String> {
    let gate = (0_usize..8, prop::collection::vec(any::<prop::sample::Index>(), 2..5));
    (
        0_usize..=6,
        prop::collection::vec(any::<prop::sample::Index>(), 0..=6),
        prop::collection::vec(gate, 1..=40),
        prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        any::<u64>(),
    )
        .prop_map(|(inputs, flip_flops, gates, outputs, order)| {
            let mut nets: Vec<String> = (0..inputs).map(|input| format!("in{input}")).collect();
            let mut lines: Vec<String> = nets.iter().map(|net| format!("INPUT({net})")).collect();
            nets.extend((0..flip_flops.len()).map(|flip_flop| format!("q{flip_flop}")));
            if nets.is_empty() {
                nets.push("q".to_owned());
                lines.push("q = DFF(g0)".to_owned());
            }
            for (number, (word, reads)) in gates.iter().enumerate() {
                let word = ["AND", "NAND", "OR", "NOR", "XOR", "XNOR", "NOT", "BUF"][*word];
                let unary = matches!(word, "NOT" | "BUF");
                // Only nets that are there already: no loop but through flip-flops.
                let reads: Vec<&str> = reads
                    .iter()
                    .map(|index| index.get(&nets).as_str())
                    .take(if unary { 1 } else { 5 })
                    .collect();
                lines.push(format!("g{number} = {word}({})", reads.join(", ")));
                nets.push(format!("g{number}"));
            }
            for (number, reads) in flip_flops.iter().enumerate() {
                lines.push(format!("q{number} = DFF({})", reads.get(&nets)));
            }
            let mut observed: Vec<&str> =
                outputs.iter().map(|index| index.get(&nets).as_str()).collect();
            observed.sort_unstable();
            observed.dedup();
            lines.extend(observed.iter().map(|net| format!("OUTPUT({net})")));
            // Any order of lines: a Fisher-Yates shuffle from the one random number.
            let mut state = order;
            for last in (1..lines.len()).rev() {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                lines.swap(last, (state >> 33) as usize % (last + 1));
            }
            let mut text = String::new();
            for line in lines {
                writeln!(text, "{line}").expect("writing to a string");
            }
            text
        })
}
