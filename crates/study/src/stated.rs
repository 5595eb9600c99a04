//! Figures that a paper's text or tables state. Each paper's crate lists its own. A point that is
//! read off a chart is not stated.
//!
//! - [`Stated`] is an absolute figure beside that of the simulated machine. `stanchion calibrate
//!   --papers` prints all of them.
//! - [`Point`] is a point of a chart. The chart of the experiment shows it as a hollow mark.

use crate::experiment::Paper;
use crate::outcome::{Picture, Series, StatedPoint};
use crate::units::{nanos, significant};

/// A figure that a paper states, and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    /// The paper.
    pub paper: Paper,
    /// The figure, table or section that states it.
    pub place: &'static str,
    /// The name of the figure.
    pub what: String,
    /// The unit of both figures.
    pub unit: Unit,
    /// The paper's figure. None if the row stands for figures that are not comparable.
    pub theirs: Option<f64>,
    /// The figure of the simulated machine.
    pub ours: Ours,
}

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A time, in nanoseconds.
    Nanos,
    /// A speed-up.
    Times,
}

/// The figure of the simulated machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Ours {
    /// It was computed. If there is a bound, it should be off the paper's by that share at most.
    Computed {
        /// The figure.
        figure: f64,
        /// The bound.
        within: Option<f64>,
    },
    /// It is the paper's, given to the model.
    Input,
    /// There is none, for this reason.
    NotComparable(&'static str),
}

impl Stated {
    /// Returns a figure that was computed.
    pub fn computed(
        (paper, place): (Paper, &'static str),
        what: impl Into<String>,
        (unit, theirs): (Unit, f64),
        figure: f64,
        within: Option<f64>,
    ) -> Self {
        let ours = Ours::Computed { figure, within };
        Self { paper, place, what: what.into(), unit, theirs: Some(theirs), ours }
    }

    /// Returns a figure that was given to the model.
    pub fn input(
        (paper, place): (Paper, &'static str),
        what: impl Into<String>,
        (unit, theirs): (Unit, f64),
    ) -> Self {
        Self { paper, place, what: what.into(), unit, theirs: Some(theirs), ours: Ours::Input }
    }

    /// Returns a row for figures that cannot be compared.
    pub fn not_comparable(
        (paper, place): (Paper, &'static str),
        what: impl Into<String>,
        reason: &'static str,
    ) -> Self {
        let ours = Ours::NotComparable(reason);
        Self { paper, place, what: what.into(), unit: Unit::Nanos, theirs: None, ours }
    }

    /// Returns the share by which ours is off the paper's.
    pub fn off(&self) -> Option<f64> {
        match (&self.ours, self.theirs) {
            (Ours::Computed { figure, .. }, Some(theirs)) => Some(figure / theirs - 1.0),
            _ => None,
        }
    }

    /// Returns whether ours is within the bound, if there is one.
    pub fn is_within(&self) -> Option<bool> {
        let Ours::Computed { within: Some(within), .. } = self.ours else { return None };
        self.off().map(|off| off.abs() <= within)
    }
}

impl Unit {
    /// Returns a figure as text.
    pub fn text(self, figure: f64) -> String {
        match self {
            Self::Nanos => nanos(figure),
            Self::Times => significant(figure),
        }
    }
}

/// A point of a chart that a paper states.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The experiment of the chart. Each of its charts that has the series shows the point.
    pub experiment: &'static str,
    /// The name of the series.
    pub series: &'static str,
    /// The place along the horizontal axis.
    pub x: X,
    /// The value, in the unit of the chart.
    pub y: f64,
    /// The machines that it can stand beside.
    pub beside: Beside,
    /// The passage that states it.
    pub passage: String,
}

/// A place along the horizontal axis of a chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum X {
    /// A value.
    At(f64),
    /// One of the axis's names.
    Named(&'static str),
}

/// The machines that a point can stand beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Every machine: the axes have ratios and numbers.
    All,
    /// The paper's own in virtual time: an axis has a time.
    ThePapers,
}

/// Adds the `points` of `experiment` to the series of its `pictures`. If it did not run on the
/// paper's own machine, that leaves out the points that can stand beside no other. A point of a
/// name that an axis lacks is left out too: the program did not run.
///
/// # Errors
///
/// If on the paper's own machine no picture has the series of a point, that series.
pub fn place(
    points: &[Point],
    experiment: &str,
    pictures: &mut [Picture],
    is_the_papers: bool,
) -> Result<(), &'static str> {
    for point in points.iter().filter(|point| point.experiment == experiment) {
        if point.beside == Beside::ThePapers && !is_the_papers {
            continue;
        }
        let mut has_series = false;
        for picture in &mut *pictures {
            let is_it = |series: &&mut Series| series.name == point.series;
            let Some(series) = picture.series.iter_mut().find(is_it) else { continue };
            has_series = true;
            let x = match point.x {
                X::At(x) => Some(x),
                X::Named(name) => {
                    picture.x.names.iter().position(|of| of == name).map(|x| x as f64)
                }
            };
            let stated = x.map(|x| StatedPoint { x, y: point.y, passage: point.passage.clone() });
            series.stated.extend(stated);
        }
        if is_the_papers && !has_series {
            return Err(point.series);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Axis, Shape};

    fn picture(names: &[&str]) -> Picture {
        Picture {
            title: "two series".to_owned(),
            shape: Shape::Lines,
            x: Axis::named("program", names.iter().map(|&name| name.to_owned()).collect()),
            y: Axis::linear("ratio"),
            series: ["queue", "lock"].map(|name| Series::new(name, [(0.0, 1.0)])).into(),
        }
    }

    fn point(series: &'static str, x: X, beside: Beside) -> Point {
        Point {
            experiment: "ms97/fig1",
            series,
            x,
            y: 0.6,
            beside,
            passage: "more than 40%".to_owned(),
        }
    }

    #[test]
    fn a_point_comes_to_each_chart_that_has_its_series_and_its_name() {
        let points = [
            point("queue", X::At(11.0), Beside::All),
            point("lock", X::Named("Hanoi"), Beside::All),
            point("lock", X::At(1.0), Beside::ThePapers),
        ];
        for (is_the_papers, of_lock) in [(false, vec![1.0]), (true, vec![1.0, 1.0])] {
            let mut pictures = [picture(&["Galaxy", "Hanoi"]), picture(&[])];
            place(&points, "ms97/fig2", &mut pictures, is_the_papers).unwrap();
            assert!(pictures.iter().flat_map(|of| &of.series).all(|of| of.stated.is_empty()));
            place(&points, "ms97/fig1", &mut pictures, is_the_papers).unwrap();
            for picture in &pictures {
                let passage = "more than 40%".to_owned();
                let expected = [StatedPoint { x: 11.0, y: 0.6, passage }];
                assert_eq!(picture.series[0].stated, expected);
            }
            let xs = |of: &Picture| of.series[1].stated.iter().map(|at| at.x).collect::<Vec<_>>();
            assert_eq!(xs(&pictures[0]), of_lock);
            assert_eq!(xs(&pictures[1]), of_lock[1..]);
        }
    }

    #[test]
    fn a_point_of_an_unknown_series_is_refused_on_the_papers_machine() {
        let points = [point("stack", X::At(11.0), Beside::All)];
        let placed = |is| place(&points, "ms97/fig1", &mut [picture(&[])], is);
        assert_eq!(placed(true), Err("stack"));
        assert_eq!(placed(false), Ok(()), "this computer may have other series");
    }

    #[test]
    fn a_figure_is_judged_by_its_bound() {
        let place = (Paper::Ms97, "figure 1");
        let of = |ours, within| Stated::computed(place, "a", (Unit::Nanos, 10.0), ours, within);
        assert_eq!(of(10.9, Some(0.1)).is_within(), Some(true));
        assert_eq!(of(8.9, Some(0.1)).is_within(), Some(false));
        assert_eq!(of(11.2, None).is_within(), None);
        assert_eq!(of(15.0, None).off(), Some(0.5));
        assert_eq!(Stated::input(place, "a", (Unit::Times, 2.0)).off(), None);
        assert_eq!(Stated::not_comparable(place, "a", "unknown").is_within(), None);
    }
}
