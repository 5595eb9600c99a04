//! The command `wordcount`, from arguments to streams and exit code, and its parts.

#[path = "common/done.rs"]
#[expect(dead_code, reason = "no files of waits")]
mod done;
#[path = "common/scratch.rs"]
mod scratch;

use done::Done;
use examples::strategies::{self, STRATEGIES};
use examples::wordcount::{
    app,
    fault::{Fault, LONGEST},
    part,
    tally::Tally,
    walk::{Found, Search},
};
use scratch::Scratch;
use std::fs;
use std::io::Cursor;
use std::path::Path;

fn run(arguments: &[&str]) -> Done {
    Done::of("wordcount", arguments, |arguments, out, err| app::run(arguments, out, err))
}

fn counted(text: &[u8]) -> Result<Tally, Fault> {
    let mut tally = Tally::default();
    tally.count(text, 0).map(|()| tally)
}

/// The same, but in parts of so many bytes.
fn in_parts(text: &[u8], length: u64) -> Result<Tally, Fault> {
    let mut sum = Tally::default();
    for range in part::parts(text.len() as u64, length) {
        let (first, bytes) = part::read(&mut Cursor::new(text), range)?;
        assert_eq!(text[first.min(text.len() as u64) as usize..][..bytes.len()], bytes);
        let mut tally = Tally::default();
        tally.count(&bytes, first)?;
        sum.merge(tally);
    }
    Ok(sum)
}

const TEXT: &str =
    "The tortoise and the hare. 1989's  words:\n\n\tnaïve, ΣΊΣΥΦΟΣ; «Ünïcödé» don't\r\n漢字 x";

#[test]
fn words_are_letters_and_digits_in_any_case() {
    let tally = counted(TEXT.as_bytes()).expect("text");
    assert_eq!((tally.lines, tally.words, tally.bytes), (3, 15, TEXT.len() as u64));
    assert_eq!(tally.top(2), [("the", 2), ("1989", 1)]);
    for word in ["naïve", "ünïcödé", "漢字", "s", "t", "don"] {
        assert_eq!(tally.each.get(word), Some(&1), "{word}");
    }
}

#[test]
fn no_cut_changes_what_is_counted() {
    let whole = counted(TEXT.as_bytes()).expect("text");
    for length in 1..=TEXT.len() as u64 + 2 {
        assert_eq!(in_parts(TEXT.as_bytes(), length).expect("text"), whole, "parts of {length}");
    }
    // A word over many parts, and over more than one block of the text that is read on.
    let long = format!("{} end", "w".repeat(LONGEST - 10));
    let whole = counted(long.as_bytes()).expect("text");
    assert_eq!(whole.words, 2);
    for length in [1_000, 4_096, 50_000, LONGEST as u64 - 10] {
        assert_eq!(in_parts(long.as_bytes(), length).expect("text"), whole, "parts of {length}");
    }
    assert_eq!(in_parts(b"", 5).expect("text"), Tally::default());
}

#[test]
fn what_is_not_text_is_told_with_the_byte() {
    let told = |text: &[u8]| {
        let whole = counted(text).expect_err("no text").to_string();
        let parts = in_parts(text, 4).expect_err("no text").to_string();
        assert_eq!(whole, parts);
        whole
    };
    assert_eq!(told(b"text text\0text"), "not text, left out: byte 9 is 0");
    assert_eq!(told(b"gr\xfcn and t\xe4"), "not text, left out: no UTF-8 from byte 2 on");
    let endless = vec![b'x'; 3 * LONGEST];
    let fault = in_parts(&endless, 1 << 10).expect_err("no text");
    assert_eq!(fault.to_string(), "not text, left out: no space within 65536 bytes from byte 0 on");
}

#[test]
fn every_strategy_counts_the_same() {
    let numbers: String = (0..3_000).map(|number| format!("n{} ", number % 7)).collect();
    let names: Vec<String> =
        (0..60).map(|file| format!("d{}/{}/f{file}", file % 5, file % 3)).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), numbers.as_bytes())).collect();
    let scratch = Scratch::with("strategies", &files);
    let roots = [scratch.0.clone()];
    for strategy in STRATEGIES {
        for threads in [1, 4] {
            let search = Search { roots: &roots, hidden: false, part: 1_000 };
            let found: Found = strategies::run(strategy.name, threads, search).expect("a pool");
            assert!(found.faults.is_empty(), "{:?}", found.faults);
            let Tally { files, words, bytes, each, .. } = found.tally;
            assert_eq!((files, words, bytes), (60, 180_000, 60 * 9_000), "{}", strategy.name);
            assert_eq!((each.len(), each["n0"], found.directories), (7, 60 * 429, 21));
        }
    }
}

#[test]
fn a_report_names_counts_and_the_most_frequent_words() {
    let scratch = Scratch::with(
        "report",
        &[("a.txt", b"b a b\n"), ("sub/b.txt", b"c c b d\n"), (".git/x", b"hidden")],
    );
    let done = run(&[scratch.path(), "--top", "2", "--threads", "2"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(
        done.out
            .starts_with("counted      2 lines, 7 words, 14 bytes in 2 files and 2 directories\n"),
        "{}",
        done.out
    );
    assert!(
        done.out.contains(
            "left out     0 not text, 1 hidden, 0 links, 0 that are no files; 0 could not be read\n"
        ),
        "{}",
        done.out
    );
    assert!(
        done.out.ends_with("\n2 of 4 different words\n           3 b\n           2 c\n"),
        "{}",
        done.out
    );
    let all = run(&[scratch.path(), "--hidden", "--top", "0"]);
    assert!(all.out.contains("8 words, 20 bytes in 3 files and 3 directories"), "{}", all.out);
    assert!(!all.out.contains("different"), "{}", all.out);
    let file = format!("{}/a.txt", scratch.path());
    let twice = run(&[&file, &file]);
    assert!(twice.out.contains(" 6 words, 12 bytes in 2 files and 0 directories"), "{}", twice.out);
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_counted() {
    let large = [b"word ".repeat(500_000), vec![0]].concat();
    let scratch = Scratch::with(
        "faults",
        &[("good", b"some words"), ("picture", b"\x89PNG\0"), ("large", &large)],
    );
    let nowhere = format!("{}/missing", scratch.path());
    let done = run(&[&nowhere, scratch.path()]);
    assert_eq!(done.code, 1, "{}", done.err);
    let lines: Vec<&str> = done.err.lines().collect();
    let [large, missing, picture] = lines[..] else { panic!("{}", done.err) };
    assert!(missing.starts_with(&format!("wordcount: {nowhere}: cannot be read: ")), "{missing}");
    assert_eq!(
        large,
        format!("wordcount: {}/large: not text, left out: byte 2500000 is 0", scratch.path())
    );
    assert_eq!(
        picture,
        format!("wordcount: {}/picture: not text, left out: byte 4 is 0", scratch.path())
    );
    assert!(
        done.out.contains(" 2 words, 10 bytes in 1 files"),
        "a file counts whole or not at all: {}",
        done.out
    );
    assert!(done.out.contains("2 not text"), "{}", done.out);
    // A file that is no text is no failure, and need not be reported.
    let quiet = run(&["--quiet", scratch.path()]);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
}

#[test]
#[cfg(unix)]
fn links_are_not_followed_and_what_may_not_be_read_is_told() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let scratch = Scratch::with(
        "links",
        &[("sub/file", b"word"), ("closed/file", b"word"), ("secret", b"word")],
    );
    symlink(&scratch.0, scratch.0.join("sub/up")).expect("a link");
    symlink("/nowhere", scratch.0.join("dangling")).expect("a link");
    let deny = |name: &str, mode| {
        let path = scratch.0.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path
    };
    let denied = [deny("closed", 0), deny("secret", 0)];
    // Root may read everything.
    let refused = denied.iter().filter(|path| !readable(path)).count();
    let done = run(&[scratch.path()]);
    deny("closed", 0o700);
    assert_eq!(done.err.lines().count(), refused, "{}", done.err);
    assert!(done.err.lines().all(|line| line.contains(": cannot be read: ")), "{}", done.err);
    assert_eq!(done.code, u8::from(refused > 0));
    assert!(done.out.contains(&format!("{} words", 3 - refused)), "{}", done.out);
    assert!(done.out.contains(" 2 links, "), "{}", done.out);
    // Named by the user, a link is followed.
    let link = format!("{}/sub/up/sub", scratch.path());
    assert!(run(&[&link]).out.contains(" 1 words"), "through the link");
}

#[cfg(unix)]
fn readable(path: &Path) -> bool {
    fs::read_dir(path).is_ok() || fs::read(path).is_ok()
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_are_passed_over_and_files_that_say_they_are_empty_are_read() {
    let scratch = Scratch::with("pipe", &[("file", b"word")]);
    let made = std::process::Command::new("mkfifo").arg(scratch.0.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let done = run(&[scratch.path()]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("1 that are no files; 0 could not"), "{}", done.out);
    assert!(run(&["/proc/version"]).out.contains("linux"), "its length is 0");
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [["--top", "-1"], ["--threads", "0"], ["--strategy", "all"], ["--sort", "up"]] {
        let done = run(&more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
    }
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in ["[PATH]", "--top", "--hidden", "--quiet", "--threads", "--strategy", "Exit code"] {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
