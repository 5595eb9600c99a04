//! Sharing and comparing with small files that are made up.

use std::fs;
use std::path::{Path, PathBuf};

use super::document::Shared;
use super::*;
use crate::grids::tests::grid;
use crate::grids::{DISTRIBUTIONS, Grid};

/// A directory of its own for a test, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("stanchion-share-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file with the grids of a made-up computer.
    fn file(&self, name: &str, number: u64, processors: usize, grids: &[Grid]) -> PathBuf {
        let computer = Computer {
            processor: "a processor".to_owned(),
            processors,
            cores: Some(processors),
            sockets: None,
            nodes: Some(1),
            kernel: "linux 6.1.0".to_owned(),
            memory_gib: Some(8),
        };
        self.text(name, &Shared::new(format!("{number:016x}"), computer, grids).text().unwrap())
    }

    fn text(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A grid of cells with the same throughputs, but for the last.
fn cells(number: usize, usual: &'static [f64], last: &'static [f64]) -> Grid {
    let rows: Vec<&[f64]> = (1..number).map(|_| usual).chain([last]).collect();
    grid(&rows)
}

fn compared(files: &[PathBuf], distinct: bool) -> Comparison {
    Comparison::read(files, distinct).unwrap()
}

fn refused(files: &[&Path]) -> String {
    let files: Vec<PathBuf> = files.iter().map(|file| (*file).to_owned()).collect();
    let error = Comparison::read(&files, false).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn the_contestant_with_the_smallest_worst_regret_is_safe_on_all() {
    let place = Place::new("safe");
    // On one computer A is best, but in the last cell; on the other C is. B is never far away.
    let one = cells(6, &[10.0, 9.0, 4.0], &[3.0, 9.0, 4.0]);
    let two = cells(6, &[5.0, 9.0, 10.0], &[5.0, 9.0, 10.0]);
    let files = [place.file("one", 1, 2, &[one]), place.file("two", 2, 4, &[two])];
    let comparison = compared(&files, false);
    let question = &comparison.questions[0];
    let names: Vec<&str> = question.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["B", "C", "stanchion A"]);
    assert!((question.rows[0].worst() - 10.0 / 9.0).abs() < 1e-3);
    assert_eq!(question.answers[1].choice.choose[0], "C");
    let lines = comparison.lines();
    assert!(lines[0] == "2 computers:" && lines[2].contains("4 processors"), "{lines:?}");
    let safe = "  safe on all: B; at worst the best is 1.11 times as fast; the next is C with 2.50 \
                (2 computers, 6 cells each)";
    assert!(lines.iter().any(|line| line == safe), "{lines:?}");
    let page = crate::report::compared(&comparison, &place.0.join("out")).unwrap();
    let page = fs::read_to_string(page).unwrap();
    let parts = [
        "<strong>B</strong> · at worst the best is 1.11 times as fast",
        "id=\"all-locks\"",
        "up to 8 GiB",
        "Worst regret on each computer",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(&*place.0.to_string_lossy()), "a page names no files");
}

#[test]
fn computers_are_compared_over_equal_numbers_of_cells() {
    let place = Place::new("equal");
    // The last of ten cells is not among the four that both have.
    let many = cells(10, &[10.0, 8.0], &[1.0, 8.0]);
    let few = cells(4, &[10.0, 8.0], &[10.0, 8.0]);
    let brief = Grid { brief: true, cells: few.cells[..2].to_vec(), ..few.clone() };
    let other = Grid { family: "stacks".to_owned(), ..brief };
    let files = [place.file("many", 1, 2, &[many, other]), place.file("few", 2, 4, &[few])];
    let comparison = compared(&files, false);
    assert_eq!(comparison.questions.len(), 1, "two cells decide nothing");
    let question = &comparison.questions[0];
    assert_eq!((question.cells, question.answers[0].choice.cells), (4, 10));
    assert_eq!(question.rows[0].name, "stanchion A");
    assert!((question.rows[0].worst() - 1.0).abs() < 1e-9);
}

#[test]
fn one_computer_counts_once() {
    let place = Place::new("once");
    let few = cells(4, &[10.0, 8.0], &[10.0, 8.0]);
    let many = cells(9, &[10.0, 8.0], &[10.0, 8.0]);
    let [a, b, c] = [("a", 1, &few), ("b", 1, &many), ("c", 2, &few)]
        .map(|(name, number, grid)| place.file(name, number, 2, std::slice::from_ref(grid)));
    for distinct in [false, true] {
        let comparison = compared(&[a.clone(), b.clone()], distinct);
        assert_eq!(comparison.computers.len(), 1);
        assert_eq!(comparison.computers[0].1, b, "the file with more cells counts");
        let out = &comparison.left_out[0];
        assert!(out.certain && out.file == a && out.counts == b, "{out:?}");
        assert!(comparison.lines()[2].contains("is of the same computer as"));
    }
    let perhaps = compared(&[a.clone(), c.clone()], false);
    assert_eq!(perhaps.computers.len(), 1);
    assert!(!perhaps.left_out[0].certain);
    let lines = perhaps.lines();
    assert!(lines[2].contains("perhaps") && lines[2].contains("--distinct"), "{lines:?}");
    assert_eq!(compared(&[a, c], true).computers.len(), 2);
}

#[test]
fn files_that_cannot_be_compared_are_refused_with_place_and_remedy() {
    let place = Place::new("refused");
    let grid = cells(4, &[10.0, 8.0], &[10.0, 8.0]);
    let whole_file = place.file("whole", 1, 2, std::slice::from_ref(&grid));
    let whole = fs::read_to_string(&whole_file).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}: {whole}");
        whole.replacen(from, to, 1)
    };
    for (text, said) in [
        (String::new(), "it is empty. Copy it again"),
        (whole[..whole.len() / 2].to_owned(), "it was cut off in line 7. Copy it again"),
        ("PK\u{3}".to_owned(), "line 1 column 1. `stanchion study --share FILE`"),
        ("[]".to_owned(), "it is no shared file"),
        ("{\"a\": 1}".to_owned(), "\"schema\": it is no shared file"),
        (changed("share/1", "share/9"), "its layout is `stanchion-share/9`, this version reads"),
        ("{\"schema\": \"stanchion-study/1\"}".to_owned(), "`stanchion study --output DIR --share"),
        (changed("\"nodes\"", "\"host\""), "unknown field `host`"),
        (changed("\"threads\":2", "\"threads\":-2"), "at line 8 column"),
        (changed("\"number_of_cells\":4", "\"number_of_cells\":5"), "it says 5 cells and has 4"),
        (changed("[10.0,", "[-10.0,"), "family locks: cell 0: a figure is negative"),
        (changed("[[10.0,100.0,null,true],", "["), "cell 0: 1 figures for 2 contestants"),
        (changed("\"locks\"", "\"latches\""), "family 1: its name is not known"),
        (changed("a processor", "\\u001b[2J"), "\"computer\": a text has control characters"),
        (changed("0000000000000001", "host"), "\"number\": it has not 16 hexadecimal digits"),
    ] {
        let bad = place.text("bad", &text);
        let error = refused(&[&whole_file, &bad]);
        assert!(error.contains(said) && error.contains(&*bad.to_string_lossy()), "{said}: {error}");
    }
    for end in 1..whole.trim_end().len() {
        let error = refused(&[&whole_file, &place.text("bad", &whole[..end])]);
        assert!(error.contains("it was cut off in line "), "{}: {error}", &whole[..end]);
    }
    fs::write(place.0.join("bad"), [b'\n', 0xFF]).unwrap();
    assert!(refused(&[&place.0.join("bad")]).contains("line 2: it is not text"));
    assert!(refused(&[&place.0.join("none")]).contains("none: No such file"));
    let later = place.file("later", 2, 4, &[Grid { distributions: 9, ..grid }]);
    let error = refused(&[&whole_file, &later]);
    assert!(error.contains("their locks were drawn from distributions 1 and 9"), "{error}");
}

#[test]
fn a_file_has_listed_fields_only_and_its_number_stays() {
    let place = Place::new("write");
    let out = &place.0;
    let file = out.join("mine.json");
    let refused = write(out, &file, Output::Stderr).unwrap_err();
    assert!(refused.to_string().contains("nothing to share") && refused.exit_code() == 2);
    let here = Host::here();
    let mine = Grid {
        processor: here.processor.clone(),
        processors: here.parallelism,
        written: 1_795_756_032,
        ..cells(4, &[10.0, 8.123_456], &[10.0, 8.0])
    };
    let of = DISTRIBUTIONS + 1;
    let old = Grid { family: "stacks".to_owned(), distributions: of, ..mine.clone() };
    grids::keep(out, &[mine, old]).unwrap();
    let read = || {
        write(out, &file, Output::Stderr).unwrap();
        fs::read_to_string(&file).unwrap()
    };
    let text = read();
    assert_eq!(text, read(), "the number is made once");
    assert!(text.contains("8.123") && !text.contains("8.1234"), "{text}");
    assert!(!text.contains("1795756032") && !text.contains("stacks"), "{text}");
    assert!(!text.contains(&*out.to_string_lossy()) && !text.contains("written"), "{text}");
    let comparison = compared(std::slice::from_ref(&file), false);
    assert_eq!(comparison.questions[0].answers[0].choice.cells, 4);
    fs::remove_file(out.join(NUMBER)).unwrap();
    assert_ne!(text, read(), "without the file there is a new number");
}

#[test]
fn an_answer_is_judged_by_the_cells_of_another_seed() {
    let place = Place::new("judge");
    let one = cells(6, &[10.0, 9.0, 4.0], &[10.0, 9.0, 4.0]);
    // Here B is best, and A takes a tenth more in the mean of six cells.
    let two = Grid { seed: 2, ..cells(6, &[10.0, 11.0, 4.0], &[10.0, 11.0, 4.0]) };
    let one = place.file("one", 1, 2, &[one]);
    let two = place.file("two", 2, 2, &[two]);
    let judged = judge(&one, &two).unwrap();
    assert_eq!(judged.len(), 1);
    assert_eq!((judged[0].chosen.as_str(), judged[0].best.as_str()), ("stanchion A", "B"));
    assert!((judged[0].times.unwrap() - 1.1).abs() < 1e-3, "{judged:?}");
    assert!(judged[0].line().contains("1.10 times the mean of the best (B)"), "{judged:?}");
    let other = place.file("other", 3, 4, &[Grid { seed: 3, ..cells(6, &[1.0], &[1.0]) }]);
    for (answers, cells, said) in
        [(&one, &one, "both have the cells of seed 1"), (&one, &other, "different computers")]
    {
        let error = judge(answers, cells).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(said), "{error}");
    }
}
