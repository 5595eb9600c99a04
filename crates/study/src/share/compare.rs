//! Compares several computers.
//!
//! - *Answer*: the choice of each computer over all of its cells.
//! - *Safe on all*: the contestant with the smallest worst regret in any cell of any computer,
//!   among those that can be chosen on each. More cells have larger worst regrets, so each computer
//!   has as many cells as the one with the fewest.
//! - *One computer*: files of one random number, and files of equal processor, count and kernel
//!   unless they are said to be distinct. The file with the most cells counts.

use std::path::PathBuf;

use super::computer::Computer;
use super::read::File;
use crate::error::Error;
use crate::grids::{Choice, FAMILIES, FEWEST, Grid, choose};
use crate::units::{count, significant};

/// The comparison of several computers.
#[derive(Debug)]
pub struct Comparison {
    /// The computers, and the file of each.
    pub computers: Vec<(Computer, PathBuf)>,
    /// The files that do not count.
    pub left_out: Vec<LeftOut>,
    /// The families that were measured on any computer.
    pub questions: Vec<Question>,
}

/// A file that does not count, because another one is of the same computer.
#[derive(Debug)]
pub struct LeftOut {
    /// The file.
    pub file: PathBuf,
    /// The file that counts.
    pub counts: PathBuf,
    /// True if the random numbers are equal, so that it is certain.
    pub certain: bool,
}

/// A family, and its answers.
#[derive(Debug)]
pub struct Question {
    /// The name of the family on the command line.
    pub family: String,
    /// The kind of thing, for a reader.
    pub title: String,
    /// The answers of the computers that have one.
    pub answers: Vec<Answer>,
    /// The number of cells of each computer that the rows are over.
    pub cells: usize,
    /// The contestants that can be chosen on each of these computers, the safest first.
    pub rows: Vec<Row>,
}

/// The answer of a computer.
#[derive(Debug)]
pub struct Answer {
    /// The number of the computer, from 0 on.
    pub computer: usize,
    /// The choice over all of its cells.
    pub choice: Choice,
}

/// The regrets of a contestant.
#[derive(Debug)]
pub struct Row {
    /// The name.
    pub name: String,
    /// The mean and the worst regret on each computer, in the order of the answers.
    pub regrets: Vec<(f64, f64)>,
    /// The number of cells in which it starved a thread.
    pub starves: usize,
}

impl Row {
    /// Returns the worst regret on any computer.
    pub fn worst(&self) -> f64 {
        self.regrets.iter().map(|(_, worst)| *worst).fold(0.0, f64::max)
    }

    /// Returns in words in how many cells it starved a thread, if in any.
    pub fn starved(&self) -> String {
        match self.starves {
            0 => String::new(),
            cells => format!("; it starves a thread in {}", count(cells, "cell")),
        }
    }

    fn mean(&self) -> f64 {
        self.regrets.iter().map(|(mean, _)| mean.ln()).sum()
    }
}

impl Comparison {
    /// Reads the files and compares their computers. If `distinct`, computers that look the same
    /// are different ones.
    pub fn read(files: &[PathBuf], distinct: bool) -> Result<Self, Error> {
        let files: Result<Vec<File>, Error> = files.iter().map(|path| File::read(path)).collect();
        Self::new(files?, distinct)
    }

    fn new(files: Vec<File>, distinct: bool) -> Result<Self, Error> {
        same_distributions(&files)?;
        let (files, left_out) = one_of_each(files, distinct);
        let question = |&(family, title): &(&str, &str)| Question::new(family, title, &files);
        Ok(Self {
            questions: FAMILIES.iter().filter_map(question).collect(),
            computers: files.into_iter().map(|file| (file.computer, file.path)).collect(),
            left_out,
        })
    }

    /// Returns the text for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}:", count(self.computers.len(), "computer"))];
        for (at, (computer, file)) in self.computers.iter().enumerate() {
            lines.push(format!("  {}  {} ({})", at + 1, computer.words(), file.display()));
        }
        for out in &self.left_out {
            let (file, counts) = (out.file.display(), out.counts.display());
            lines.push(if out.certain {
                format!("{file} is of the same computer as {counts} and does not count.")
            } else {
                format!(
                    "{file} is perhaps of the same computer as {counts} and does not count: equal \
                     processor, count and kernel. If they are two, add --distinct."
                )
            });
        }
        if self.questions.is_empty() {
            lines.push(format!("No family has the {FEWEST} cells that an answer needs."));
        }
        for question in &self.questions {
            lines.push(question.title.clone());
            for answer in &question.answers {
                let (name, sure) = (answer.choice.answer(), answer.choice.sure());
                lines.push(format!("  on {}: {name}; {sure}", answer.computer + 1));
            }
            lines.push(format!("  safe on all: {}", question.safe()));
        }
        lines
    }
}

impl Question {
    /// Compares a family, if any computer has an answer.
    fn new(family: &str, title: &str, files: &[File]) -> Option<Self> {
        let of = |file: &File| file.grids.iter().find(|grid| grid.family == family).cloned();
        let grids: Vec<(usize, Grid, Choice)> = (files.iter().enumerate())
            .filter_map(|(computer, file)| {
                let grid = of(file)?;
                let choice = choose(&grid)?;
                Some((computer, grid, choice))
            })
            .collect();
        let cells = grids.iter().map(|(_, grid, _)| grid.cells.len()).min()?;
        let equal: Option<Vec<Choice>> = (grids.iter())
            .map(|(_, grid, _)| {
                let mut grid = grid.clone();
                grid.cells.truncate(cells);
                choose(&grid)
            })
            .collect();
        let answers = grids.into_iter().map(|(computer, _, choice)| Answer { computer, choice });
        Some(Self {
            family: family.to_owned(),
            title: title.to_owned(),
            answers: answers.collect(),
            cells,
            rows: rows(&equal.unwrap_or_default()),
        })
    }

    /// Returns which contestant is safe on all computers that have an answer.
    pub fn safe(&self) -> String {
        let Some(row) = self.rows.first() else {
            return format!("none can be chosen on all ({})", self.sure());
        };
        let starves = row.starved();
        let next = self.rows.get(1).map_or_else(String::new, |next| {
            format!("; the next is {} with {}", next.name, significant(next.worst()))
        });
        let (name, worst, sure) = (&row.name, significant(row.worst()), self.sure());
        format!("{name}; at worst the best is {worst} times as fast{starves}{next} ({sure})")
    }

    /// Returns what the contestants were compared over.
    pub fn sure(&self) -> String {
        let cells = count(self.cells, "cell");
        match self.answers.len() {
            1 => format!("1 computer, {cells}"),
            number => format!("{number} computers, {cells} each"),
        }
    }
}

/// Returns the contestants that all choices have, the smallest worst regret first.
fn rows(choices: &[Choice]) -> Vec<Row> {
    let Some(first) = choices.first() else { return Vec::new() };
    let row = |name: &String| {
        let of = |choice: &Choice| choice.standings.iter().find(|of| of.name == *name).cloned();
        let standings: Vec<_> = choices.iter().map(of).collect::<Option<_>>()?;
        Some(Row {
            name: name.clone(),
            regrets: standings.iter().map(|of| (of.mean, of.worst)).collect(),
            starves: standings.iter().map(|of| of.starves).sum(),
        })
    };
    let mut rows: Vec<Row> =
        first.standings.iter().filter_map(|standing| row(&standing.name)).collect();
    let key = |row: &Row| (row.worst(), row.mean());
    rows.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    rows
}

/// Refuses files of which a family was drawn from different distributions.
pub(super) fn same_distributions(files: &[File]) -> Result<(), Error> {
    let all = files.iter().flat_map(|file| file.grids.iter().map(move |grid| (file, grid)));
    let mut known: Vec<(&File, &Grid)> = Vec::new();
    for (file, grid) in all {
        match known.iter().find(|(_, other)| other.family == grid.family) {
            Some((first, other)) if other.distributions != grid.distributions => {
                return Err(Error::Distributions {
                    family: grid.family.clone(),
                    one: (first.path.clone(), other.distributions),
                    other: (file.path.clone(), grid.distributions),
                });
            }
            Some(_) => {}
            None => known.push((file, grid)),
        }
    }
    Ok(())
}

/// Returns a file for each computer, and the others.
fn one_of_each(files: Vec<File>, distinct: bool) -> (Vec<File>, Vec<LeftOut>) {
    let mut kept: Vec<File> = Vec::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    for mut file in files {
        let look = |file: &File| {
            let computer = &file.computer;
            (computer.processor.clone(), computer.processors, computer.kernel.clone())
        };
        let certain = kept.iter().position(|other| other.number == file.number);
        let alike = || kept.iter().position(|other| !distinct && look(other) == look(&file));
        let Some(at) = certain.or_else(alike) else {
            kept.push(file);
            continue;
        };
        let cells = |file: &File| file.grids.iter().map(|grid| grid.cells.len()).sum::<usize>();
        if cells(&file) > cells(&kept[at]) {
            std::mem::swap(&mut file, &mut kept[at]);
            for out in left_out.iter_mut().filter(|out| out.counts == file.path) {
                out.counts.clone_from(&kept[at].path);
            }
        }
        let (certain, counts) = (certain.is_some(), kept[at].path.clone());
        left_out.push(LeftOut { file: file.path, counts, certain });
    }
    (kept, left_out)
}
