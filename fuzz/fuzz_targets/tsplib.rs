//! Gives any bytes to the reader of TSPLIB files. It never panics. An accepted input is symmetric.
//! If it is written as a full matrix, it reads the same again.
//!
//! `cargo xtask fuzz tsplib` runs for a while on the stable compiler, as CI does.
//! `cargo +nightly fuzz run tsplib fuzz/corpus/tsplib examples/data` is for long runs.

#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use stanchion_applications::tsp::Instance;

/// The size of the longest matrix that is written again.
const MOST: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    match Instance::parse(bytes) {
        Err(error) => assert!(error.line >= 1 && error.to_string().len() < 4_096, "{error}"),
        Ok(instance) => {
            let cities = instance.cities();
            assert!(cities >= 3);
            let all = 0..cities.min(MOST);
            let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
            for (from, to) in pairs.clone() {
                assert_eq!(instance.distance(from, to), instance.distance(to, from));
            }
            if cities > MOST {
                return;
            }
            let mut matrix = format!(
                "NAME: again\nTYPE: TSP\nDIMENSION: {cities}\nEDGE_WEIGHT_TYPE: EXPLICIT\n\
                 EDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n"
            );
            for (from, to) in pairs.clone() {
                let end = if to + 1 == cities { '\n' } else { ' ' };
                write!(matrix, "{}{end}", instance.distance(from, to)).expect("a string takes all");
            }
            let again = Instance::parse(matrix.as_bytes())
                .unwrap_or_else(|error| panic!("{error}\n{matrix}"));
            assert!(
                pairs
                    .clone()
                    .all(|(from, to)| again.distance(from, to) == instance.distance(from, to))
            );
            let tour: Vec<_> = all.collect();
            assert_eq!(again.length(&tour), instance.length(&tour));
        }
    }
});
