//! Gives any bytes to the `.bench` parser. It never panics. It prints an accepted input so that the
//! output reads the same again.
//!
//! `cargo +nightly fuzz run bench_netlist fuzz/corpus/bench_netlist examples/data`. The same
//! property runs over mutations of real netlists in every `cargo test`
//! (`crates/applications/tests/together/reprint.rs`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use stanchion_applications::regsim::Netlist;

fuzz_target!(|bytes: &[u8]| {
    match Netlist::parse(bytes) {
        Err(error) => assert!(error.line >= 1 && error.to_string().len() < 4_096, "{error}"),
        Ok(netlist) => {
            let printed = netlist.to_string();
            assert_eq!(Netlist::parse(printed.as_bytes()).as_ref(), Ok(&netlist), "{printed}");
            assert_eq!(netlist.levelized().len(), netlist.gates().count());
        }
    }
});
