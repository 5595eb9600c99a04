//! The reader of TSPLIB files: every format against distances worked out by hand, and every way a
//! file can be wrong.

use proptest::prelude::*;
use stanchion_applications::tsp::{Instance, MAX_LINE};

/// The rows of the matrix of four cities that all of these files describe.
const FOUR: [[u32; 4]; 4] = [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]];

fn explicit(format: &str, numbers: &str) -> String {
    format!(
        "NAME : four\nTYPE : TSP\nCOMMENT : by hand\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\n\
         EDGE_WEIGHT_FORMAT : {format}\nEDGE_WEIGHT_SECTION\n{numbers}\nEOF\n"
    )
}

#[track_caller]
fn read(text: &str) -> Instance {
    Instance::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn rows(instance: &Instance) -> Vec<Vec<u32>> {
    let n = instance.cities();
    (0..n).map(|a| (0..n).map(|b| instance.distance(a, b)).collect()).collect()
}

#[test]
fn every_format_of_a_matrix() {
    for (format, numbers) in [
        ("FULL_MATRIX", "0 1 2 3\n1 0 4 5\n2 4 0 6\n3 5 6 0"),
        ("UPPER_ROW", "1 2 3\n4 5\n6"),
        ("LOWER_ROW", "1\n2 4\n3 5 6"),
        ("UPPER_DIAG_ROW", "0 1 2 3\n0 4 5\n0 6\n0"),
        ("LOWER_DIAG_ROW", "0\n1 0\n2 4 0\n3 5 6 0"),
        // Over lines as the writer liked, and with what stands on the diagonal of some files.
        ("LOWER_DIAG_ROW", " 9999 1 9999\n\n 2\t4 9999 3\r\n 5 6 9999 "),
    ] {
        let instance = read(&explicit(format, numbers));
        assert_eq!(rows(&instance), FOUR, "{format}");
        assert_eq!(instance.name(), "four");
    }
}

/// A rectangle of 3 by 4 and a point, with every rounding; the numbers are worked out in the tests
/// of `distance`.
#[test]
fn every_kind_of_coordinates() {
    let file = |kind: &str, points: &str| {
        read(&format!("DIMENSION: 3\nEDGE_WEIGHT_TYPE: {kind}\nNODE_COORD_SECTION\n{points}"))
    };
    let three = |instance: Instance| [(0, 1), (0, 2), (1, 2)].map(|(a, b)| instance.distance(a, b));
    // 5, the root of 2, and the root of 13.
    let points = "1 0 0\n2 3 4\n3 1.0 1.0e0\nEOF";
    assert_eq!(three(file("EUC_2D", points)), [5, 1, 4]);
    assert_eq!(three(file("CEIL_2D", points)), [5, 2, 4]);
    // The roots of 10 (3.16, up to 4), of 25 (5), and of ((10 - 15)^2 + 5^2) / 10 = 5 (2.24, up to
    // 3). In any order.
    assert_eq!(three(file("ATT", "3 15 5\n1 0 0\n2 10 0\n")), [4, 5, 3]);
    // Half a degree of a meridian, a quarter of the equator, and as far again but for the
    // flattening that a sphere has not.
    assert_eq!(three(file("GEO", "1 0.0 0.0\n2 0.30 0.0\n3 0.0 90.0\n")), [56, 10_020, 10_020]);
}

#[test]
fn what_changes_no_distance_is_passed_over() {
    let text = "NAME: x\nTYPE: TSP\nCOMMENT: one\nCOMMENT: two\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\n\
        EDGE_WEIGHT_FORMAT: UPPER_ROW\nDISPLAY_DATA_TYPE: TWOD_DISPLAY\nEDGE_WEIGHT_SECTION\n1 2 3\n\
        DISPLAY_DATA_SECTION\n1 0 0\n2 1 1\n3 2 2\nEOF\nwhatever";
    assert_eq!(read(text).length(&[0, 1, 2]), 6);
    assert_eq!(read(&format!("\u{feff}{text}")).length(&[0, 1, 2]), 6);
    assert_eq!(read(&text.replace('\n', "\r\n")).length(&[0, 1, 2]), 6);
    assert_eq!(read("NAME: x\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 1\n3 0 2").length(&[0, 1, 2]), 4);
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, expected: &str) {
    let error = Instance::parse(text.as_ref()).expect_err("it must be refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn no_file_of_tsplib() {
    refused("", "line 1: the file ends without distances: `EDGE_WEIGHT_SECTION` is missing");
    refused("hello world", "line 1: unknown keyword `hello`: is this a TSPLIB file?");
    refused("name: x", "line 1: unknown keyword `name`: is this a TSPLIB file?");
    refused(b"NAME: x\n\xff", "line 2: byte 1 of the line is no text: is this a TSPLIB file?");
    refused("NAME: \u{1}", "line 1: byte 7 of the line is no text: is this a TSPLIB file?");
    refused(
        format!("COMMENT: {}", "x".repeat(MAX_LINE)),
        "line 1: the line has 65545 bytes, the limit is 65536: is this a TSPLIB file?",
    );
    let long = "x".repeat(100);
    refused(
        &long,
        &format!("line 1: unknown keyword `{}...`: is this a TSPLIB file?", &long[..40]),
    );
}

#[test]
fn headers() {
    refused(
        "TYPE: ATSP",
        "line 1: the type is `ATSP`: only TSP, with the same distance both ways, is read",
    );
    for (found, shown) in
        [("17.5", "17.5"), ("-1", "-1"), ("2", "2"), ("5000", "5000"), ("1e3", "1e3")]
    {
        refused(
            format!("DIMENSION: {found}"),
            &format!("line 1: the dimension is `{shown}`: must be a whole number from 3 to 4096"),
        );
    }
    refused("DIMENSION:", "line 1: `DIMENSION` has no value: write `DIMENSION: value`");
    refused("DIMENSION: 3\n\nDIMENSION: 4", "line 3: `DIMENSION` stands twice: first in line 1");
    refused(
        "EDGE_WEIGHT_TYPE: XRAY1",
        "line 1: the edge weight type `XRAY1` is not known: known are EXPLICIT, EUC_2D, CEIL_2D, GEO and ATT",
    );
    refused(
        "EDGE_WEIGHT_FORMAT: UPPER_COL",
        "line 1: the edge weight format `UPPER_COL` is not known: known are FULL_MATRIX, UPPER_ROW, LOWER_ROW, UPPER_DIAG_ROW and LOWER_DIAG_ROW",
    );
    refused(
        "DIMENSION: 3\nEDGE_WEIGHT_TYPE: GEO\nEOF",
        "line 3: the file ends without distances: `NODE_COORD_SECTION` is missing",
    );
}

#[test]
fn sections_without_what_they_need() {
    refused(
        "NODE_COORD_SECTION",
        "line 1: `NODE_COORD_SECTION` comes before `DIMENSION`: write `DIMENSION: ...` above it",
    );
    refused(
        "DIMENSION: 3\nEDGE_WEIGHT_SECTION",
        "line 2: `EDGE_WEIGHT_SECTION` comes before `EDGE_WEIGHT_TYPE`: write `EDGE_WEIGHT_TYPE: ...` above it",
    );
    refused(
        "DIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_SECTION",
        "line 3: `EDGE_WEIGHT_SECTION` comes before `EDGE_WEIGHT_FORMAT`: write `EDGE_WEIGHT_FORMAT: ...` above it",
    );
    refused(
        "DIMENSION: 3\nEDGE_WEIGHT_TYPE: ATT\nEDGE_WEIGHT_SECTION",
        "line 3: `EDGE_WEIGHT_SECTION` does not go with the edge weight type ATT",
    );
}

#[test]
fn matrices() {
    let four = |numbers: &str| explicit("UPPER_ROW", numbers);
    refused(four("1 2 3 4 5"), "line 9: the matrix ends after 5 of 6 distances");
    refused(
        four("1 2 3 4 5 6\n7"),
        "line 9: `7` after all 6 distances of the matrix: is the dimension right?",
    );
    refused(
        four("1 2\n3 4.5 5 6"),
        "line 9: `4.5` is no distance: must be a whole number from 0 to 4294967295",
    );
    refused(
        four("1 2 3 4 5 -6"),
        "line 8: `-6` is no distance: must be a whole number from 0 to 4294967295",
    );
    refused(
        explicit("FULL_MATRIX", "0 1 2 3\n1 0 4 5\n2 9 0 6\n3 5 6 0"),
        "line 12: from city 3 to 2 it is 9, but 4 back: only the same distance both ways is read",
    );
}

#[test]
fn coordinates() {
    let three = |cities: &str| {
        format!("DIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{cities}")
    };
    refused(three("1 0 0\n2 0"), "line 5: `2 0` is no city: write its number and two coordinates");
    refused(three("1 0 0 0"), "line 4: `1 0 0 0` is no city: write its number and two coordinates");
    refused(
        three("1 0 zero"),
        "line 4: `1 0 zero` is no city: write its number and two coordinates",
    );
    refused(three("1 0 inf"), "line 4: `1 0 inf` is no city: write its number and two coordinates");
    refused(three("0 0 0"), "line 4: city `0`: must be 1 to 3");
    refused(three("4 0 0"), "line 4: city `4`: must be 1 to 3");
    refused(three("1 0 0\n2 1 1\n1 2 2"), "line 6: city 1 has coordinates twice: first in line 4");
    refused(three("1 0 0\n3 1 1\nEOF"), "line 6: city 2 has no coordinates");
    refused(
        three("1 0 0\n2 1 1\n3 0 1e10"),
        "line 6: from city 1 to 3 it is farther than 4294967295",
    );
}

proptest! {
    /// Whatever the bytes, the reader answers.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Instance::parse(&bytes);
    }

    /// However a file is changed, the reader answers. If it accepts the file, the distances are
    /// symmetric.
    #[test]
    fn any_change_of_a_file(
        position in any::<prop::sample::Index>(),
        change in prop_oneof![Just("\n"), Just(" "), Just("1"), Just("-"), Just("EOF"), Just("\nDIMENSION: 4"), Just("")],
        cut in 0_usize..30,
    ) {
        let mut text = explicit("FULL_MATRIX", "0 1 2 3\n1 0 4 5\n2 4 0 6\n3 5 6 0");
        let at = position.index(text.len());
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, change);
        if let Ok(instance) = Instance::parse(text.as_bytes()) {
            let rows = rows(&instance);
            for (a, row) in rows.iter().enumerate() {
                for (b, distance) in row.iter().enumerate() {
                    prop_assert_eq!(*distance, rows[b][a]);
                }
            }
        }
    }
}
