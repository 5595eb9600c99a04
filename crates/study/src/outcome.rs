//! What an experiment returns: plain data, the same for the page and for the JSON document.

use serde::{Deserialize, Serialize};

/// Whether the paper's claim held here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "because", rename_all = "snake_case")]
pub enum Verdict {
    /// The rule in the experiment's file was met; the figures that met it.
    Holds(String),
    /// It was not; the figures that did not.
    Differs(String),
    /// It was measured, but this machine cannot decide the claim; the reason.
    NotJudged(String),
    /// It was not run; the reason.
    NotRun(String),
}

impl Verdict {
    /// `Holds` or `Differs`, with the same figures either way.
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

/// What one experiment found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// A title that says what was run here, in place of the experiment's own.
    #[serde(skip)]
    pub title: Option<String>,
    /// Whether the claim held.
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
    /// Who ran and who waited where, in virtual time. Not in the results: whoever wants them runs
    /// the experiment, which gives the same ones.
    #[serde(skip)]
    pub timelines: Vec<Drawn>,
    /// What a reader must know to read the figures: how it was measured, what it leaves out.
    pub notes: Vec<String>,
    /// All figures, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// What the terminal shows below the verdict.
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
            data: None,
            lines: Vec::new(),
        }
    }
}

/// One figure, the paper's, a model's if there is one, and ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared. Comparisons of one name stand in one row of the report.
    pub what: String,
    /// What the paper says.
    pub paper: String,
    /// What a model says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What was found here.
    pub here: String,
}

impl Comparison {
    /// Returns a comparison without a model's figure.
    pub fn new(what: impl Into<String>, paper: impl Into<String>, here: impl Into<String>) -> Self {
        Self { what: what.into(), paper: paper.into(), model: None, here: here.into() }
    }

    /// The same, with what a model says.
    pub fn modelled(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }
}

/// A picture: its data are its series, and the report prints them as a table too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Picture {
    /// The title, above the picture.
    pub title: String,
    /// How the series are shown.
    pub shape: Shape,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is shown.
    pub series: Vec<Series>,
}

/// How a picture shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One line for each series, over a numeric x.
    Lines,
    /// One row for each series, one dot in it for each x, placed by y: for more series than
    /// colours.
    Rows,
    /// One row for each series, one field in it for each named x, coloured by how far its y is
    /// above 1.
    Map,
    /// Bars of how often something was so large, the series side by side.
    Bars {
        /// How much of the x axis each takes; it ends at its point's x.
        width: f64,
        /// How many there are room for, from 0 on.
        bars: usize,
    },
}

/// What is measured along an axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// What, with its unit.
    pub label: String,
    /// How values are spaced along the axis.
    pub scale: Scale,
    /// What x = 0, 1, … stand for, where they are names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// How values are spaced along an axis.
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

    /// Returns an axis whose values 0, 1, … stand for `names`.
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
    /// Shown as dots without a line: what was sampled, beside what was computed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dots: bool,
}

impl Series {
    /// Returns a series that is drawn as a line.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), dots: false }
    }

    /// The same, shown as dots.
    pub fn dotted(self) -> Self {
        Self { dots: true, ..self }
    }
}

/// The timeline of a simulated run.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// In one or two words.
    pub name: &'static str,
    /// What ran, in a sentence.
    pub title: String,
    /// SVG.
    pub picture: String,
    /// The same for Perfetto: trace events, JSON.
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
