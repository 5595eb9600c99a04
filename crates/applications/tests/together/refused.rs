//! Every way a netlist can be wrong: the line and the words of the error.

use stanchion_applications::regsim::{MAX_LINE, Netlist, circuits};

#[track_caller]
fn refused(text: impl AsRef<[u8]>, expected: &str) {
    let error = Netlist::parse(text.as_ref()).expect_err("it must be refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn nothing_in_it() {
    refused("", "line 1: the netlist is empty: it has no statement, only blank lines and comments");
    refused(
        "# s27\n\n   \n",
        "line 1: the netlist is empty: it has no statement, only blank lines and comments",
    );
    refused(
        "INPUT(a)\nb = NOT(a)\n",
        "line 2: the netlist has no output, so nothing can be observed: add `OUTPUT(net)`",
    );
}

#[test]
fn unknown_words() {
    refused(
        "OUTPUT(a)\na = NADN(b, c)",
        "line 2: unknown gate `NADN`: known are DFF, AND, NAND, OR, NOR, XOR, XNOR, NOT, BUFF and BUF",
    );
    refused(
        "OUTPUT(a)\na = (b, c)",
        "line 2: unknown gate `(b, c)`: known are DFF, AND, NAND, OR, NOR, XOR, XNOR, NOT, BUFF and BUF",
    );
    refused(
        "WIRE(a)",
        "line 1: unknown statement `WIRE(a)`: a line is `INPUT(net)`, `OUTPUT(net)` or `net = GATE(net, ...)`",
    );
    let long = "x".repeat(60_000);
    refused(
        format!("{long}(a)"),
        &format!(
            "line 1: unknown statement `{}...`: a line is `INPUT(net)`, `OUTPUT(net)` or `net = GATE(net, ...)`",
            &long[..48]
        ),
    );
}

#[test]
fn wrong_case() {
    refused("INPUT(a)\nb = dff(a)", "line 2: `dff` is in the wrong case: write `DFF`");
    refused("INPUT(a)\nb = Nand(a, a)", "line 2: `Nand` is in the wrong case: write `NAND`");
    refused("INPUT(a)\nb = buf(a)", "line 2: `buf` is in the wrong case: write `BUFF`");
    refused("\n\ninput(a)", "line 3: `input` is in the wrong case: write `INPUT`");
    refused("Output(a)", "line 1: `Output` is in the wrong case: write `OUTPUT`");
    // Names keep their case, so this is another net.
    refused(
        "INPUT(a)\nOUTPUT(A)",
        "line 2: net `A` is used here, but nothing drives it: define it with `INPUT(A)` or `A = ...`",
    );
}

#[test]
fn nets_without_a_driver_or_with_two() {
    refused(
        "INPUT(a)\nOUTPUT(b)\nb = AND(a, c)\n",
        "line 3: net `c` is used here, but nothing drives it: define it with `INPUT(c)` or `c = ...`",
    );
    refused("INPUT(a)\n#\nINPUT(a)", "line 3: net `a` is defined twice: first in line 1");
    refused(
        "INPUT(a)\nOUTPUT(b)\nb = NOT(a)\nb = DFF(a)",
        "line 4: net `b` is defined twice: first in line 3",
    );
    refused("INPUT(a)\nOUTPUT(a)\nOUTPUT(a)", "line 3: `OUTPUT(a)` stands twice: first in line 2");
}

#[test]
fn loops() {
    refused(
        "INPUT(i)\nOUTPUT(o)\no = AND(i, c)\na = AND(i, c)\nb = NOT(a)\nc = OR(b, i)\n",
        "line 4: combinational loop of 3: a -> b -> c -> a; put a DFF into it",
    );
    refused("OUTPUT(a)\na = NOT(a)", "line 2: combinational loop of 1: a -> a; put a DFF into it");
    // The same with a flip-flop is a circuit.
    assert!(Netlist::parse(b"OUTPUT(a)\na = NOT(q)\nq = DFF(a)").is_ok());
}

#[test]
fn a_loop_of_a_hundred_thousand_is_found_without_recursion() {
    let mut text = String::from("OUTPUT(n0)\n");
    for net in 0..100_000 {
        text += &format!("n{net} = NOT(n{})\n", (net + 1) % 100_000);
    }
    let error = Netlist::parse(text.as_bytes()).expect_err("it is a ring");
    let message = error.to_string();
    assert!(
        message.starts_with("line 2: combinational loop of 100000: n0 -> n99999 -> "),
        "{message}"
    );
    assert!(message.ends_with(" -> ... -> n0; put a DFF into it"), "{message}");
    assert!(message.len() < 500, "{message}");
}

#[test]
fn a_chain_of_a_hundred_thousand_is_a_circuit() {
    let mut text = String::from("INPUT(n0)\nOUTPUT(n100000)\n");
    for net in (1..=100_000).rev() {
        text += &format!("n{net} = NOT(n{})\n", net - 1);
    }
    assert_eq!(Netlist::parse(text.as_bytes()).map(|netlist| netlist.depth()), Ok(100_000));
}

#[test]
fn numbers_of_inputs() {
    refused("a = NOT(b, c)", "line 1: `NOT` has exactly one input, not 2");
    refused("a = DFF()", "line 1: `DFF` has exactly one input, not 0");
    refused("a = AND(b)", "line 1: `AND` has two or more inputs, not 1");
    refused("INPUT(a, b)", "line 1: `INPUT` has exactly one net, not 2");
    refused("OUTPUT( )", "line 1: `OUTPUT` has exactly one net, not 0");
}

#[test]
fn punctuation() {
    refused(
        "INPUT a",
        "line 1: unknown statement `INPUT a`: a line is `INPUT(net)`, `OUTPUT(net)` or `net = GATE(net, ...)`",
    );
    refused("INPUT", "line 1: missing `(` after `INPUT`");
    refused("a = NOT", "line 1: missing `(` after `NOT`");
    refused("INPUT(a", "line 1: missing `)` at the end of the line");
    refused("a = AND(b, c", "line 1: missing `)` at the end of the line");
    refused("INPUT(a) INPUT(b)", "line 1: unexpected `INPUT(b)` after the closing `)`");
    refused("a = NOT(b);", "line 1: unexpected `;` after the closing `)`");
    refused("a = AND(b,, c)", "line 1: missing name of a net between the parentheses");
    refused("= AND(b, c)", "line 1: missing name of a net before `=`");
    refused(
        "a b = NOT(c)",
        "line 1: `a b` is no name of a net: names have no blanks, parentheses, commas or `=`",
    );
    refused(
        "a = NOT(b = c)",
        "line 1: `b = c` is no name of a net: names have no blanks, parentheses, commas or `=`",
    );
}

#[test]
fn no_text() {
    refused(
        b"INPUT(a)\n\xff\xfe",
        "line 2: byte 1 of the line is not UTF-8: is this a .bench netlist?",
    );
    refused(
        b"INPUT(\0)",
        "line 1: byte 7 of the line is the control character '\\0': is this a .bench netlist?",
    );
    refused(
        b"\x7fELF\x02\x01",
        "line 1: byte 1 of the line is the control character '\\u{7f}': is this a .bench netlist?",
    );
}

#[test]
fn a_line_of_ten_megabytes() {
    let long = "a".repeat(10 << 20);
    refused(
        format!("INPUT(b)\n{long}\n"),
        "line 2: the line has 10485760 bytes, the limit is 65536: is this a .bench netlist?",
    );
    // A comment is a line as well; one at the limit is fine.
    let most = format!("INPUT(a)\nOUTPUT(a)\n#{}\n", "-".repeat(MAX_LINE - 1));
    assert!(Netlist::parse(most.as_bytes()).is_ok());
}

#[test]
fn what_is_allowed() {
    let tolerant = "\u{feff}  INPUT ( a )  # first\r\n\tOUTPUT(b)\r\nb=BUF(a)#second\r\n\r\n";
    let plain = "INPUT(a)\nOUTPUT(b)\nb = BUFF(a)\n";
    assert_eq!(Netlist::parse(tolerant.as_bytes()), Netlist::parse(plain.as_bytes()));
    assert!(Netlist::parse(plain.as_bytes()).is_ok());
    // A gate may read a net twice, and nets may be used before they are defined.
    assert!(Netlist::parse(b"OUTPUT(z)\nz = XOR(a, a)\nINPUT(a)").is_ok());
}

/// Counts from the headers of the files and the literature.
#[test]
fn known_circuits() {
    let expected =
        [("s27", [4, 1, 3, 10]), ("s298", [3, 6, 14, 119]), ("s5378", [35, 49, 179, 2_779])];
    for ((name, text), (same_name, counts)) in circuits::ALL.into_iter().zip(expected) {
        assert_eq!(name, same_name);
        let netlist =
            Netlist::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = [
            netlist.inputs().count(),
            netlist.outputs().len(),
            netlist.flip_flops().count(),
            netlist.gates().count(),
        ];
        assert_eq!(found, counts, "{name}");
    }
}
