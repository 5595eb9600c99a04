//! The command `hasher`, from arguments to streams and exit code, and its parts.

#[path = "common/done.rs"]
#[expect(dead_code, reason = "no files of waits")]
mod done;
#[path = "common/scratch.rs"]
mod scratch;

use done::Done;
use examples::hasher::{
    app,
    crews::{CREWS, Size},
    hash::{self, Hash},
};
use scratch::Scratch;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

fn run(arguments: &[&str]) -> Done {
    Done::of("hasher", arguments, |arguments, out, err| app::run(arguments, out, err))
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = Hash::new();
    hash.write(bytes);
    hash.finish()
}

/// The line of a report that begins with that word.
fn line<'a>(done: &'a Done, word: &str) -> &'a str {
    let mut lines = done.out.lines();
    lines.find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("no {word}: {}", done.out))
}

#[test]
fn hashes_are_those_of_the_specification() {
    // As `xxhsum -H1` prints them.
    assert_eq!(hash_of(b""), 0xef46_db37_51d8_e999);
    assert_eq!(hash_of(b"a"), 0xd24e_c4f1_a98c_6e5b);
    assert_eq!(hash_of(b"abc"), 0x44bc_2cf5_ad77_0999);
    assert_eq!(hash_of(b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
}

#[test]
fn a_hash_does_not_depend_on_where_the_bytes_are_cut() {
    let bytes: Vec<u8> = (0..300_u32).map(|byte| (byte * byte) as u8).collect();
    for length in [1, 31, 32, 33, 64, 100, 300] {
        let whole = hash_of(&bytes[..length]);
        for step in 1..=length {
            let mut hash = Hash::new();
            bytes[..length].chunks(step).for_each(|bytes| hash.write(bytes));
            assert_eq!(hash.finish(), whole, "{length} bytes by {step}");
        }
    }
}

/// Gives a few bytes at a time, and is interrupted in between.
struct Slow<'a>(&'a [u8], bool);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let wanted = buffer.len().min(1_000);
        self.0.read(&mut buffer[..wanted])
    }
}

#[test]
fn reads_that_are_short_or_interrupted_make_no_difference() {
    let bytes: Vec<u8> = (0..700_000_u32).map(|byte| (byte % 251) as u8).collect();
    for length in [0, 1, 8 << 10, (8 << 10) + 1, 700_000] {
        let bytes = &bytes[..length];
        let expected = (hash_of(bytes), length as u64);
        assert_eq!(hash::of(&mut Slow(bytes, false)).expect("bytes"), expected);
        assert_eq!(hash::of(&mut { bytes }).expect("bytes"), expected);
    }
}

#[test]
fn every_runtime_finds_the_same() {
    let large = b"0123456789abcdef".repeat(2_000);
    let names: Vec<String> =
        (0..300).map(|file| format!("d{}/{}/f{file}", file % 5, file % 3)).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .enumerate()
        .map(|(file, name)| (name.as_str(), &large[..file * file / 3]))
        .collect();
    let scratch = Scratch::with("runtimes", &files);
    let mut trees = Vec::new();
    for crew in CREWS {
        for (processors, threads) in [(1, 1), (2, 3), (4, 64)] {
            let size = Size { processors, threads };
            let (found, _) = (crew.run)(size, &scratch.0).expect(crew.name);
            assert!(found.faults.is_empty(), "{}: {:?}", crew.name, found.faults);
            assert_eq!((found.files.len(), found.directories), (300, 21), "{}", crew.name);
            assert!(found.files.is_sorted(), "{}", crew.name);
            for file in &found.files {
                let content = fs::read(scratch.0.join(&file.path)).expect("a scratch file");
                assert_eq!((file.hash, file.bytes), (hash_of(&content), content.len() as u64));
            }
            trees.push(found.tree());
        }
    }
    assert!(trees.iter().all(|&tree| tree == trees[0]), "{trees:x?}");
}

#[test]
fn a_tree_is_the_same_elsewhere_and_another_if_anything_in_it_is() {
    let files: [(&str, &[u8]); 2] = [("a", b"one"), ("sub/b", b"two")];
    let (here, there) = (Scratch::with("here", &files), Scratch::with("there", &files));
    let tree = |scratch: &Scratch| {
        let done = run(&[scratch.path()]);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        line(&done, "tree").to_owned()
    };
    let first = tree(&here);
    assert_eq!(tree(&there), first);
    fs::write(there.0.join("a"), b"One").expect("ours");
    assert_ne!(tree(&there), first, "content");
    fs::write(there.0.join("a"), b"one").expect("ours");
    assert_eq!(tree(&there), first);
    fs::rename(there.0.join("a"), there.0.join("c")).expect("ours");
    assert_ne!(tree(&there), first, "a name");
}

#[test]
fn a_report_counts_and_a_list_names() {
    let scratch = Scratch::with("report", &[("a", b"a"), ("sub/b", b"abc"), (".dot", b"")]);
    for runtime in CREWS {
        let done = run(&[scratch.path(), "--runtime", runtime.name, "--processors", "2"]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", runtime.name);
        assert_eq!(line(&done, "hashed"), "hashed       3 files and 2 directories, 4 bytes");
        let left_out = "left out     0 links, 0 that are no files; 0 could not be read";
        assert_eq!(line(&done, "left out"), left_out);
        let run = format!("run          {}, 2 processors: ", runtime.name);
        assert!(line(&done, "run").starts_with(&run), "{}", done.out);
        assert!(line(&done, "elapsed").contains(" files/s, "), "{}", done.out);
    }
    let listed = run(&[scratch.path(), "--list"]);
    let path = scratch.path();
    assert_eq!(
        listed.out,
        format!(
            "ef46db3751d8e999  {path}/.dot\nd24ec4f1a98c6e5b  {path}/a\n44bc2cf5ad770999  {path}/sub/b\n"
        )
    );
    let file = format!("{path}/a");
    assert_eq!(run(&[&file, "--list"]).out, format!("d24ec4f1a98c6e5b  {file}\n"));
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_hashed() {
    let scratch = Scratch::with("faults", &[("good", b"a")]);
    let nowhere = format!("{}/missing", scratch.path());
    for runtime in CREWS {
        let done = run(&[&nowhere, "--runtime", runtime.name]);
        assert_eq!(done.code, 1, "{}", runtime.name);
        assert!(done.err.starts_with(&format!("hasher: {nowhere}")), "{}", done.err);
        assert!(done.err.contains(": cannot be read: "), "{}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
        assert!(line(&done, "left out").ends_with("1 could not be read"), "{}", done.out);
    }
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
    symlink("round", scratch.0.join("round")).expect("a link");
    symlink("/nowhere", scratch.0.join("dangling")).expect("a link");
    let deny = |name: &str, mode| {
        let path = scratch.0.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path
    };
    let denied = [deny("closed", 0), deny("secret", 0)];
    // Root may read everything.
    let readable = |path: &PathBuf| fs::read_dir(path).is_ok() || fs::read(path).is_ok();
    let refused = denied.iter().filter(|path| !readable(path)).count();
    let runs = CREWS.map(|crew| run(&[scratch.path(), "--runtime", crew.name]));
    deny("closed", 0o700);
    for done in runs {
        assert_eq!(done.err.lines().count(), refused, "{}", done.err);
        assert!(done.err.lines().all(|line| line.contains(": cannot be read: ")), "{}", done.err);
        assert_eq!(done.code, u8::from(refused > 0));
        let hashed = format!("hashed       {} files", 3 - refused);
        assert!(line(&done, "hashed").starts_with(&hashed), "{}", done.out);
        assert!(line(&done, "left out").starts_with("left out     3 links, "), "{}", done.out);
    }
    // A link that the user names is followed. A link that leads to itself is reported.
    let link = format!("{}/sub/up/sub", scratch.path());
    assert!(run(&[&link]).out.contains(" 1 files"), "through the link");
    assert_eq!(run(&[&format!("{}/round", scratch.path())]).code, 1);
}

#[test]
#[cfg(target_os = "linux")]
fn names_may_be_of_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let scratch = Scratch::with("names", &[]);
    for name in [b"gr\xfcn".as_slice(), b"two\nlines", b"back\\slash", b"\xff\xfe"] {
        fs::write(scratch.0.join(OsStr::from_bytes(name)), b"a").expect("a scratch file");
    }
    let arguments = ["hasher", scratch.path(), "--list"].map(Into::into).to_vec();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = app::run(arguments, &mut out, &mut err);
    assert_eq!((code, err.as_slice()), (0, b"".as_slice()));
    let path = scratch.path();
    let mut expected = Vec::new();
    for (before, name) in [
        ("\\", b"back\\\\slash".as_slice()),
        ("", b"gr\xfcn"),
        ("\\", b"two\\nlines"),
        ("", b"\xff\xfe"),
    ] {
        expected.extend(format!("{before}d24ec4f1a98c6e5b  {path}/").into_bytes());
        expected.extend(name);
        expected.push(b'\n');
    }
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_are_passed_over_and_files_that_were_forgotten_are_read_again() {
    let scratch = Scratch::with("pipe", &[("file", b"abc"), ("sub/file", b"a")]);
    let made = std::process::Command::new("mkfifo").arg(scratch.0.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let warm = run(&[scratch.path()]);
    assert_eq!(warm.code, 0, "{}", warm.err);
    assert!(warm.out.contains("1 that are no files; 0 could not"), "{}", warm.out);
    let cold = run(&[scratch.path(), "--cold"]);
    assert_eq!(cold.code, 0, "{}", cold.err);
    assert_eq!(line(&cold, "tree"), line(&warm, "tree"));
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [["--processors", "0"], ["--threads", "-1"], ["--runtime", "all"], ["--sort", "up"]]
    {
        let done = run(&more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
    }
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(CREWS.iter().all(|crew| done.out.contains(crew.about)), "{}", done.out);
    for word in
        ["[PATH]", "--runtime", "--processors", "--threads", "--cold", "--list", "Exit code"]
    {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
