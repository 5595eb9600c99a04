//! The command `galaxy`, from arguments to streams, files and exit code.

#[path = "common/done.rs"]
mod done;
#[path = "common/scratch.rs"]
mod scratch;

use done::{Done, assert_bad_files_are_refused};
use examples::galaxy::{app, picture};
use examples::{locks, policies};
use scratch::Scratch;
use stanchion_applications::galaxy::{self, Fault, HEIGHT, Options, Scene, WIDTH, sequential};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

fn run(arguments: &[&str]) -> Done {
    Done::of("galaxy", arguments, |arguments, out, err| app::run(arguments, out, err, false))
}

const SMALL: [&str; 4] = ["--stars", "500", "--steps", "40"];

fn small(more: &[&str]) -> Done {
    run(&[&SMALL[..], more].concat())
}

#[test]
fn every_lock_and_policy_agrees_with_the_sequential_program() {
    let locks = locks::LOCKS.iter().map(|lock| ("--lock", lock.name));
    let policies = policies::POLICIES.iter().map(|policy| ("--policy", policy.name));
    for (option, name) in locks.chain(policies) {
        let done = small(&["--threads", "3", "--chunk", "10", "--check", option, name]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}");
        assert!(done.out.contains("the same as sequentially"), "{}", done.out);
        assert!(done.out.contains(&format!(", {} {name}, 13 locks", &option[2..])), "{}", done.out);
    }
}

#[test]
fn the_checksum_depends_on_stars_steps_seed_and_ratio_only() {
    let checksum = |more: &[&str]| {
        let done = small(more);
        assert_eq!(done.code, 0, "{}", done.err);
        let line = done.out.lines().find(|line| line.starts_with("checksum")).expect("a checksum");
        line.to_owned()
    };
    let plain = checksum(&[]);
    assert_eq!(checksum(&["--threads", "5", "--lock", "std", "--chunk", "1", "--no-pin"]), plain);
    assert_ne!(checksum(&["--seed", "2"]), plain);
    assert_ne!(checksum(&["--ratio", "1"]), plain);
}

#[test]
fn frames_are_png_files_that_do_not_depend_on_the_threads() {
    let pictures = |name: &str, threads: &str| {
        let scratch = Scratch::new(name);
        let directory = format!("{}/not/there/yet", scratch.path());
        let done = small(&["--frames", &directory, "--every", "15", "--threads", threads]);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert!(done.out.contains(&format!("frames       4 in {directory}\n")), "{}", done.out);
        let mut files: Vec<PathBuf> = fs::read_dir(&directory)
            .expect("made")
            .map(|entry| entry.expect("there").path())
            .collect();
        files.sort();
        // Steps 0, 15, 30 and 40.
        let names = files.iter().map(|file| file.file_name().expect("a name").to_os_string());
        let expected = (0..4).map(|frame| OsString::from(format!("frame-{frame:05}.png")));
        assert_eq!(names.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        files.iter().map(|file| read(file)).collect::<Vec<_>>()
    };
    let one = pictures("one", "1");
    assert_eq!(one, pictures("four", "4"));
    assert_ne!(one[0], one[3], "the stars move");
    let lit = one[0].chunks(3).filter(|pixel| pixel[0] > 0).count();
    assert!((200..=510).contains(&lit), "500 stars and two crosses light {lit} cells");
}

/// The bytes of the picture.
fn read(file: &Path) -> Vec<u8> {
    let decoder = png::Decoder::new(BufReader::new(File::open(file).expect("a frame")));
    let mut reader = decoder.read_info().expect("a PNG file");
    let mut bytes = vec![0; reader.output_buffer_size().expect("small")];
    let info = reader.next_frame(&mut bytes).expect("a picture");
    assert_eq!((info.width as usize, info.height as usize), (WIDTH, HEIGHT));
    assert_eq!(info.color_type, png::ColorType::Rgb);
    bytes
}

#[test]
fn a_frame_shows_stars_the_brighter_the_more_and_centres() {
    let mut cells = vec![0; WIDTH * HEIGHT];
    (cells[1], cells[2], cells[3]) = (1, 2, 100_000);
    let centres = [Some((100, 50)), Some((WIDTH - 1, HEIGHT - 1))];
    let image = picture::image(&Scene { step: 0, of: 1, cells, centres });
    let pixel = |x: usize, y: usize| {
        <[u8; 3]>::try_from(&image[3 * (y * WIDTH + x)..][..3]).expect("three")
    };
    let row = [0, 1, 2, 3, 4].map(|x| pixel(x, 0)[1]);
    assert_eq!(row, [0, 75, 105, 255, 0]);
    for (x, y) in [(100, 50), (99, 50), (100, 51), (WIDTH - 1, HEIGHT - 1), (WIDTH - 2, HEIGHT - 1)]
    {
        assert_eq!(pixel(x, y), [255, 40, 40], "({x}, {y})");
    }
    assert_eq!(pixel(99, 51), [0; 3]);
}

#[test]
fn frames_that_cannot_be_written_are_refused() {
    // A file where a directory should be.
    let scratch = Scratch::new("file");
    fs::write(&scratch.0, "in the way").expect("a scratch file");
    let below = format!("{}/below", scratch.path());
    for directory in [scratch.path(), &below] {
        let done = small(&["--frames", directory]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(
            done.err.starts_with(&format!("galaxy: {directory}: cannot be written: ")),
            "{}",
            done.err
        );
    }
    // A directory where the third frame should be.
    let scratch = Scratch::new("directory");
    let frame = scratch.0.join("frame-00002.png");
    fs::create_dir_all(&frame).expect("a scratch directory");
    let done = small(&["--frames", scratch.path(), "--every", "1", "--threads", "3"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    let expected = format!("galaxy: {}: cannot be written: ", frame.display());
    assert!(done.err.starts_with(&expected), "{}", done.err);
    assert!(!scratch.0.join("frame-00003.png").exists(), "the run ends there");
}

#[test]
fn the_table_of_waits_has_a_line_for_each_kind_or_for_each_lock() {
    let kinds = small(&["--histogram"]).out;
    for row in ["phase (1)", "pool (1)", "centres (1)", "band (10)", "all locks", "barrier"] {
        assert!(kinds.lines().any(|line| line.starts_with(row)), "no {row} in {kinds}");
    }
    assert!(kinds.contains("waits for locks, by length"), "{kinds}");
    let each = small(&["--by-lock"]).out;
    assert!(each.lines().any(|line| line.starts_with("band 9 ")), "{each}");
}

#[test]
fn what_is_wrong_is_said() {
    let options = Options { stars: 20, steps: 5, ..Options::default() };
    let mut run = galaxy::run::<examples::Std>(&options).expect("good options");
    let right = sequential::run(&options).expect("good options");
    assert_eq!(app::wrong(&run, Some(right)), None);
    let other = sequential::Outcome { checksum: !right.checksum, ..right };
    let expected =
        format!("checksum {:016x}, but {:016x} sequentially", run.checksum, other.checksum);
    assert_eq!(app::wrong(&run, Some(other)), Some(expected));
    run.fault = Some(Fault::Stars { found: 19, expected: 20 });
    assert_eq!(app::wrong(&run, None).as_deref(), Some("19 stars are left of 20"));
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [
        ["--stars", "0"],
        ["--stars", "4194305"],
        ["--steps", "0"],
        ["--steps", "-3"],
        ["--threads", "0"],
        ["--threads", "65"],
        ["--chunk", "0"],
        ["--seed", "18446744073709551616"],
        ["--ratio", "much"],
        ["--lock", "mutex"],
        ["--policy", "mutex"],
        ["--every", "5"],
    ] {
        let done = run(&more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        let named = if more[0] == "--every" { "--frames" } else { more[0] };
        assert!(done.err.contains(named), "{more:?}: {}", done.err);
    }
    for ratio in ["-0.5", "1.01", "inf", "NaN"] {
        let done = run(&["--ratio", ratio]);
        let expected =
            format!("galaxy: a second mass of {ratio}: must be 0 to 1, the first being 1\n");
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (2, "", expected.as_str()));
    }
}

#[test]
fn files_that_are_no_good_are_refused() {
    let short: &[&str] = &["--stars", "50", "--steps", "2"];
    assert_bad_files_are_refused("galaxy: ", |more| run(&[short, more].concat()));
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in
        ["--stars", "--steps", "--frames", "--lock", "--policy", "--waits", "--check", "Exit code"]
    {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
