//! Texts that the parser accepts are printed so that they read the same again. Texts that it
//! refuses cause no panic. The tests use random netlists and mutations of real ones. The fuzz
//! target `bench_netlist` looks for the same without an end.

use crate::common::random_netlist;
use proptest::prelude::*;
use stanchion_applications::regsim::{Netlist, circuits};

fn reads_the_same_again(netlist: &Netlist) {
    let printed = netlist.to_string();
    assert_eq!(Netlist::parse(printed.as_bytes()).as_ref(), Ok(netlist), "{printed}");
}

#[test]
fn real_netlists() {
    for (name, text) in circuits::ALL {
        reads_the_same_again(
            &Netlist::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}")),
        );
    }
}

/// Statements from which mutations are made: every construct, right and wrong.
const PIECES: &[&str] = &[
    "INPUT(a)",
    "INPUT(b)",
    "OUTPUT(a)",
    "OUTPUT(z)",
    "z = AND(a, b)",
    "z=NOT(a)",
    "q = DFF(z)",
    "b = BUF(q)",
    "b = BUFF( q )",
    "x = XOR(a,b,q)",
    "# a comment",
    "",
    "  ",
    "z = and(a, b)",
    "z = AND(a",
    "z = AND a, b)",
    "= AND(a)",
    "INPUT()",
    "(",
    ")",
    "=",
    "z = NAND(z, a)",
    "OUTPUT(a) b",
    "INPUT(é)",
    "OUTPUT(é)",
    "\u{feff}",
    "\u{2028}",
    "\0",
    "\r",
    "\u{85}",
];

proptest! {
    #[test]
    fn random_netlists(text in random_netlist()) {
        let netlist = Netlist::parse(text.as_bytes()).expect("it is built to be right");
        reads_the_same_again(&netlist);
    }

    #[test]
    fn pieces_in_any_order(
        lines in prop::collection::vec(prop::sample::select(PIECES), 0..12),
        end in prop::sample::select(&["\n", "\r\n"][..]),
    ) {
        if let Ok(netlist) = Netlist::parse(lines.join(end).as_bytes()) {
            reads_the_same_again(&netlist);
        }
    }

    #[test]
    fn a_real_netlist_with_some_bytes_changed(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = circuits::S27.as_bytes().to_vec();
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        let lines = bytes.split(|&byte| byte == b'\n').count();
        match Netlist::parse(&bytes) {
            Ok(netlist) => reads_the_same_again(&netlist),
            Err(error) => prop_assert!(error.line >= 1 && error.line <= lines, "{}", error),
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(netlist) = Netlist::parse(&bytes) {
            reads_the_same_again(&netlist);
        }
    }
}
