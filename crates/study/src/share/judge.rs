//! Judges the answers of one file by the cells of another one of the same computer.
//!
//! An answer is chosen over cells of one seed. Over cells of another seed, some contestant is best
//! in the mean. The answer is right if the chosen one is hardly worse there.

use std::path::Path;

use super::read::File;
use crate::error::Error;
use crate::grids::{FAMILIES, Standing, choose};
use crate::units::significant;

/// The answer for a family, judged by other cells.
#[derive(Debug)]
pub struct Judged {
    /// The kind of thing, for a reader.
    pub title: String,
    /// The chosen contestant.
    pub chosen: String,
    /// The number of cells that it was chosen over.
    pub over: usize,
    /// The number of cells that judge it.
    pub cells: usize,
    /// The contestant that is best over the cells that judge.
    pub best: String,
    /// The regrets of the chosen contestant in these cells; none if it cannot be chosen there.
    pub standing: Option<Standing>,
    /// The mean regret of the chosen contestant over that of the best.
    pub times: Option<f64>,
}

/// Judges the answers of the file `answers` by the cells of the file `cells`.
pub fn judge(answers: &Path, cells: &Path) -> Result<Vec<Judged>, Error> {
    let (answers, cells) = (File::read(answers)?, File::read(cells)?);
    super::compare::same_distributions(&[answers.clone(), cells.clone()])?;
    if answers.computer != cells.computer {
        let (answers, cells) = (answers.path, cells.path);
        return Err(Error::NotOneComputer { answers, cells });
    }
    let mut judged = Vec::new();
    for (family, title) in FAMILIES {
        let of = |file: &File| file.grids.iter().find(|grid| grid.family == family).cloned();
        let Some((first, second)) = of(&answers).zip(of(&cells)) else { continue };
        if first.seed == second.seed {
            let (answers, cells) = (answers.path, cells.path);
            return Err(Error::SameCells { family: title, seed: first.seed, answers, cells });
        }
        let Some((answer, other)) = choose(&first).zip(choose(&second)) else { continue };
        let standing = other.standings.iter().find(|of| of.name == answer.choose[0]).cloned();
        judged.push(Judged {
            title: title.to_owned(),
            chosen: answer.choose[0].clone(),
            over: answer.cells,
            cells: other.cells,
            best: other.standings[0].name.clone(),
            times: standing.as_ref().map(|of| of.mean / other.standings[0].mean),
            standing,
        });
    }
    Ok(judged)
}

impl Judged {
    /// Returns the line for a terminal.
    pub fn line(&self) -> String {
        let Self { title, chosen, over, cells, best, .. } = self;
        let head = format!("{title}: {chosen}, chosen over {over} cells. Over {cells} others ");
        let Some((standing, times)) = self.standing.as_ref().zip(self.times) else {
            return format!("{head}it cannot be chosen: it starves threads or has no figures");
        };
        let known = |figure: Option<f64>| figure.map_or("–".to_owned(), significant);
        format!(
            "{head}{} times the mean of the best ({best}); against the best of each cell {} in the \
             mean, {} at worst; processor time {}, p99.9 wait {}",
            significant(times),
            significant(standing.mean),
            significant(standing.worst),
            known(standing.processor_time),
            known(standing.tail)
        )
    }
}
