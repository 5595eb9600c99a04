//! The command `heat`, from arguments to streams, files and exit code, and its parts.

#[path = "common/done.rs"]
#[expect(dead_code, reason = "no files of waits")]
mod done;
#[path = "common/scratch.rs"]
mod scratch;

use done::Done;
use examples::heat::{
    app,
    picture::image,
    plate::{Plate, Warm, alone, rows},
    report,
};
use scratch::Scratch;
use std::time::Duration;

fn run(arguments: &[&str]) -> Done {
    Done::of("heat", arguments, |arguments, out, err| app::run(arguments, out, err))
}

fn small(more: &[&str]) -> Done {
    run(&[&["--side", "20", "--steps", "60"], more].concat())
}

/// Returns the report's text on each gang.
#[track_caller]
fn checksums(done: &Done) -> Vec<&str> {
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    done.out.lines().filter(|line| line.starts_with("checksum")).collect()
}

#[test]
fn any_number_of_members_comes_to_what_one_thread_comes_to() {
    let done = small(&["--gangs", "3", "--members", "2", "--check"]);
    let sums = checksums(&done);
    assert_eq!(sums.len(), 3, "{}", done.out);
    assert!(sums.iter().all(|sum| sum.ends_with(", the same as sequentially")), "{}", done.out);
    assert!(sums[0] != sums[1] && sums[1] != sums[2], "each has its stove elsewhere");
    // More members than rows: some have none.
    let many = run(&["--members", "3", "--side", "2", "--steps", "60", "--check"]);
    assert!(checksums(&many)[0].ends_with(", the same as sequentially"), "{}", many.out);
}

#[test]
fn every_row_belongs_to_one_member() {
    for (side, members) in [(20, 3), (1, 1), (2, 5), (7, 7)] {
        let all: Vec<_> = (0..members).flat_map(|index| rows(side, members, index)).collect();
        assert_eq!(all, (0..side).collect::<Vec<_>>());
    }
}

#[test]
fn warmth_spreads_from_the_stove_and_goes_out_at_the_rim() {
    let warmth = |steps| alone(&Plate::new(24, steps, 0));
    let sum = |warm: &Warm| warm.cells.iter().sum::<f64>();
    let (early, late) = (warmth(8), warmth(400));
    assert!(sum(&late) > sum(&early) && late.change < early.change);
    assert!(late.cells.iter().all(|cell| (0.0..=1.0).contains(cell)));
    assert!(late.cells[0] < 0.1, "the corner is next to the cold rim");
}

#[test]
fn the_picture_is_dark_where_it_is_cold() {
    assert_eq!(image(&[0.0, 1.0, -3.0]), [0, 0, 0, 255, 255, 255, 0, 0, 0]);
    let scratch = Scratch::new("picture.png");
    let done = small(&["--members", "1", "--picture", scratch.path()]);
    checksums(&done);
    assert!(done.out.contains(&format!("picture      {}", scratch.path())), "{}", done.out);
    let png = std::fs::read(&scratch.0).expect("written");
    assert!(png.starts_with(b"\x89PNG"));
    let nowhere = format!("{}/none/heat.png", scratch.path());
    let refused = small(&["--members", "1", "--picture", &nowhere]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.starts_with(&format!("heat: {nowhere}: cannot be written: ")));
}

#[test]
fn another_checksum_is_noticed() {
    let warm = |cell| Warm { cells: vec![cell], change: 0.0 };
    let row = |cell| report::Row {
        plate: Plate::new(1, 1, 0),
        warm: warm(cell),
        elapsed: Duration::ZERO,
    };
    let rows = [row(0.5), row(0.25)];
    assert_eq!(app::wrong(&rows, &[]), None);
    assert_eq!(app::wrong(&rows, &[warm(0.5), warm(0.25)]), None);
    let wrong = app::wrong(&rows, &[warm(0.5), warm(0.75)]).expect("the second differs");
    assert!(wrong.contains("by gang 1, but "), "{wrong}");
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [
        ["--gangs", "0"],
        ["--members", "0"],
        ["--members", "-1"],
        ["--side", "0"],
        ["--steps", "0"],
        ["--switching", "never"],
        ["--quantum", "0"],
    ] {
        let done = run(&more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
    }
    let large = run(&["--members", "3", "--seats", "2"]);
    assert_eq!((large.code, large.out.as_str()), (2, ""));
    assert!(large.err.contains("a gang of 3 members"), "{}", large.err);
    let both = run(&["--mpi", "--gangs", "2"]);
    assert!(both.code == 2 && both.err.contains("--gangs"), "{}", both.err);
}

#[test]
#[cfg(not(feature = "mpi"))]
fn without_mpi_it_says_how_to_get_it() {
    let done = run(&["--mpi"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    assert!(done.err.contains("--features mpi"), "{}", done.err);
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let words = ["--gangs", "--members", "--seats", "--side", "--steps", "--switching", "--mpi"];
    for word in words.into_iter().chain(["--picture", "--check", "Exit code", "cooperative"]) {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
