//! The outcome of an experiment: plain data, the same for the page and for the JSON document.

use serde::{Deserialize, Serialize};

use crate::grids::Grid;

/// The verdict on the paper's claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "because", rename_all = "snake_case")]
pub enum Verdict {
    /// The claim holds: these figures meet the rule in the experiment's file.
    Holds(String),
    /// The claim does not hold: these figures do not meet the rule.
    Differs(String),
    /// The experiment ran, but this machine cannot decide the claim, for this reason.
    NotJudged(String),
    /// The experiment did not run, for this reason.
    NotRun(String),
}

impl Verdict {
    /// Returns `Holds` if the rule is met, else `Differs`, with the same figures either way.
    pub fn when(met: bool, figures: String) -> Self {
        if met { Self::Holds(figures) } else { Self::Differs(figures) }
    }

    /// Returns the verdict in one or two words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Holds(_) => "holds",
            Self::Differs(_) => "differs",
            Self::NotJudged(_) => "not judged",
            Self::NotRun(_) => "not run",
        }
    }

    /// Returns the figures or the reason.
    pub fn because(&self) -> &str {
        match self {
            Self::Holds(text)
            | Self::Differs(text)
            | Self::NotJudged(text)
            | Self::NotRun(text) => text,
        }
    }
}

/// The findings of one experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// A title that says what was run here, in place of the experiment's own.
    #[serde(skip)]
    pub title: Option<String>,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// Figures beside the paper's.
    pub comparisons: Vec<Comparison>,
    /// The pictures, in the order of the report.
    pub pictures: Vec<Picture>,
    /// The tables, in the order of the report.
    pub tables: Vec<Table>,
    /// Tables that most readers pass over, shown folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folded: Vec<Table>,
    /// Timelines that show which threads ran and which waited on each processor, in virtual time.
    /// They are not part of the results: to run the experiment again gives the same timelines.
    #[serde(skip)]
    pub timelines: Vec<Drawn>,
    /// Notes that a reader needs for the figures: the method of measurement, and what it leaves
    /// out.
    pub notes: Vec<String>,
    /// The pieces that the model lacks. They have figures if `--counterfactuals` was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counterfactuals: Vec<Swept>,
    /// Random grids, from which follows what to use on this computer.
    #[serde(skip)]
    pub grids: Vec<Grid>,
    /// All figures, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// Lines that the terminal shows below the verdict.
    #[serde(skip)]
    pub lines: Vec<String>,
}

impl Outcome {
    /// Returns an outcome that has nothing but a verdict.
    pub fn new(verdict: Verdict) -> Self {
        Self {
            title: None,
            verdict,
            comparisons: Vec::new(),
            pictures: Vec::new(),
            tables: Vec::new(),
            folded: Vec::new(),
            timelines: Vec::new(),
            notes: Vec::new(),
            counterfactuals: Vec::new(),
            grids: Vec::new(),
            data: None,
            lines: Vec::new(),
        }
    }
}

/// A piece that the model lacks, and the findings of the runs with it, one for each size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Swept {
    /// The name of the piece.
    pub name: String,
    /// A sentence that says what is missing, with its source.
    pub piece: String,
    /// The quantity that is swept, with its unit.
    pub size: String,
    /// The figure that decides the verdict.
    pub figure: String,
    /// The findings, by the size of the piece. The first size is the model's own. Empty if no run
    /// was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<(f64, Found)>,
}

/// The findings of an experiment with a piece of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The figure that decides.
    pub figure: String,
    /// The verdict on the paper's claim.
    pub verdict: Verdict,
}

impl Swept {
    /// Returns the heading: the piece's name, and at how many sizes the claim holds with it.
    pub fn title(&self) -> String {
        let name = &self.name;
        if self.found.is_empty() {
            return format!("With {name}: not run");
        }
        let holds = |(_, found): &&(f64, Found)| matches!(found.verdict, Verdict::Holds(_));
        let sizes: Vec<String> =
            self.found.iter().filter(holds).map(|(size, _)| size.to_string()).collect();
        if sizes.is_empty() {
            return format!("With {name}, the paper's result appears at no size");
        }
        let all = self.found.len();
        let (number, sizes) = (sizes.len(), sizes.join(", "));
        format!("With {name}, the paper's result appears at {number} of {all} sizes: {sizes}")
    }

    /// Returns a row for each size: the size, the figure and the verdict.
    pub fn table(&self) -> Table {
        let row = |(size, found): &(f64, Found)| {
            vec![size.to_string(), found.figure.clone(), found.verdict.name().to_owned()]
        };
        Table {
            title: self.title(),
            columns: vec![self.size.clone(), self.figure.clone(), "verdict".to_owned()],
            rows: self.found.iter().map(row).collect(),
        }
    }

    /// Returns the same as lines of a terminal.
    pub fn lines(&self) -> Vec<String> {
        let Table { title, columns, rows } = self.table();
        let mut lines = vec![title, format!("  {}", self.piece)];
        let width = |column: usize| {
            let cells = rows.iter().chain([&columns]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let (size, figure) = (width(0), width(1));
        if !rows.is_empty() {
            let line =
                |row: &Vec<String>| format!("  {:>size$}  {:>figure$}  {}", row[0], row[1], row[2]);
            lines.extend([&columns].into_iter().chain(&rows).map(line));
        }
        lines
    }
}

/// One figure in up to three versions: the paper's, a model's if there is one, and ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the compared figure. Comparisons of one name stand in one row of the report.
    pub what: String,
    /// The paper's figure.
    pub paper: String,
    /// The model's figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The figure found here.
    pub here: String,
}

impl Comparison {
    /// Returns a comparison without a model's figure.
    pub fn new(what: impl Into<String>, paper: impl Into<String>, here: impl Into<String>) -> Self {
        Self { what: what.into(), paper: paper.into(), model: None, here: here.into() }
    }

    /// Returns the same comparison, with a model's figure.
    pub fn modelled(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }
}

/// A picture. Its data are its series, which the report also prints as a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Picture {
    /// The title, above the picture.
    pub title: String,
    /// The form of the picture.
    pub shape: Shape,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series shown.
    pub series: Vec<Series>,
}

/// The form in which a picture shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One line for each series, over a numeric x.
    Lines,
    /// One row for each series, with one dot for each x, placed by y. For pictures with more series
    /// than colours.
    Rows,
    /// One row for each series, with one field for each named x, coloured by how far its y is above
    /// 1.
    Map,
    /// A histogram, with the bars of the series side by side.
    Bars {
        /// The width of each bar on the x axis. A bar ends at its point's x.
        width: f64,
        /// The number of bars that there is room for, from 0 on.
        bars: usize,
    },
}

/// An axis: its quantity and its scale.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// The spacing of values along the axis.
    pub scale: Scale,
    /// The names that 0, 1, … stand for, if the values are names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// The spacing of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long.
    Log,
}

impl Axis {
    /// Returns an axis on which equal differences are equally long.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, names: Vec::new() }
    }

    /// Returns an axis on which equal ratios are equally long.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, names: Vec::new() }
    }

    /// Returns an axis on which the values 0, 1, … stand for `names`.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { names, ..Self::linear(label) }
    }
}

/// Named points, by rising x.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// The name, in the legend.
    pub name: String,
    /// The points as (x, y).
    pub points: Vec<(f64, f64)>,
    /// True if the series is shown as dots without a line: sampled values beside computed ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dots: bool,
    /// The least and the greatest y of the runs behind each point, in the order of the points.
    /// Empty if a point is one figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<(f64, f64)>,
    /// The points that the paper's text or tables state, which are drawn as hollow marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedPoint>,
}

/// A point of a chart that the paper's text or a table states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatedPoint {
    /// The place along the horizontal axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The passage that states it.
    pub passage: String,
}

impl Series {
    /// Returns a series that is drawn as a line.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        let (spread, stated) = (Vec::new(), Vec::new());
        Self { name: name.into(), points, dots: false, spread, stated }
    }

    /// Returns the same series, shown as dots.
    pub fn dotted(self) -> Self {
        Self { dots: true, ..self }
    }

    /// Returns the same series, with the least and the greatest y of the runs behind each point.
    pub fn with_spread(self, spread: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { spread: spread.into_iter().collect(), ..self }
    }
}

/// Returns the least and the greatest of `runs`.
pub fn range(runs: impl IntoIterator<Item = f64>) -> (f64, f64) {
    runs.into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), run| (low.min(run), high.max(run)))
}

/// The timeline of a simulated run.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The name, in one or two words.
    pub name: &'static str,
    /// A sentence that says which program ran.
    pub title: String,
    /// The picture, as SVG.
    pub picture: String,
    /// The same timeline for Perfetto, as trace events in JSON.
    pub trace: String,
}

/// A table beyond those that pictures bring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The title, above the table.
    pub title: String,
    /// The heads of the columns.
    pub columns: Vec<String>,
    /// The first cell of a row names it.
    pub rows: Vec<Vec<String>>,
}
