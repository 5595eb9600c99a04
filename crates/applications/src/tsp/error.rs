//! The errors of the reader of TSPLIB files, in words for the person that has to mend the file.

use core::fmt;
use thiserror::Error;

/// The reason why a file was refused, and the line. The caller knows the file and puts its name in
/// front.
///
/// ```
/// use stanchion_applications::tsp::Instance;
/// let error = Instance::parse(b"DIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_3D\n").unwrap_err();
/// assert_eq!(error.line, 2);
/// let unknown = "line 2: the edge weight type `EUC_3D` is not known: known are EXPLICIT,";
/// assert!(error.to_string().starts_with(unknown));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// The fault.
    pub reason: Reason,
}

/// A fault of a file, with its mend if there is one.
///
/// Words of the file are cut to [`Word::LONGEST`] characters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// A line beyond [`MAX_LINE`](super::MAX_LINE).
    #[error("the line has {length} bytes, the limit is {limit}: is this a TSPLIB file?")]
    LineTooLong {
        /// Its bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Bytes that are no text, or a control character.
    #[error("byte {column} of the line is no text: is this a TSPLIB file?")]
    NotText {
        /// The first such byte of the line, counted from 1.
        column: usize,
    },
    /// No keyword of TSPLIB.
    #[error("unknown keyword `{0}`: is this a TSPLIB file?")]
    UnknownKeyword(Word),
    /// A keyword with nothing after it.
    #[error("`{0}` has no value: write `{0}: value`")]
    NoValue(&'static str),
    /// A keyword for the second time.
    #[error("`{keyword}` stands twice: first in line {first}")]
    Twice {
        /// The keyword.
        keyword: &'static str,
        /// Line of the first.
        first: usize,
    },
    /// Another type than `TSP`.
    #[error("the type is `{0}`: only TSP, with the same distance both ways, is read")]
    Type(Word),
    /// No number of cities, or one that is no good.
    #[error("the dimension is `{found}`: must be a whole number from 3 to {limit}")]
    Dimension {
        /// As written.
        found: Word,
        /// The limit.
        limit: usize,
    },
    /// A type of distances that is not read.
    #[error(
        "the edge weight type `{0}` is not known: known are EXPLICIT, EUC_2D, CEIL_2D, GEO and ATT"
    )]
    WeightType(Word),
    /// A form of matrix that is not read.
    #[error(
        "the edge weight format `{0}` is not known: known are FULL_MATRIX, UPPER_ROW, LOWER_ROW, UPPER_DIAG_ROW and LOWER_DIAG_ROW"
    )]
    WeightFormat(Word),
    /// A section before the keyword that it needs to be understood.
    #[error("`{section}` comes before `{needed}`: write `{needed}: ...` above it")]
    Needs {
        /// The section.
        section: &'static str,
        /// The missing keyword.
        needed: &'static str,
    },
    /// A section that does not go with the type of distances.
    #[error("`{section}` does not go with the edge weight type {weights}")]
    WrongSection {
        /// The section.
        section: &'static str,
        /// The type.
        weights: &'static str,
    },
    /// A distance that is none.
    #[error("`{0}` is no distance: must be a whole number from 0 to 4294967295")]
    Distance(Word),
    /// A matrix that ends too early.
    #[error("the matrix ends after {found} of {expected} distances")]
    FewDistances {
        /// As many as there are.
        found: usize,
        /// As many as there should be.
        expected: usize,
    },
    /// A matrix with more in it.
    #[error("`{found}` after all {expected} distances of the matrix: is the dimension right?")]
    ManyDistances {
        /// The text that follows.
        found: Word,
        /// As many as there should be.
        expected: usize,
    },
    /// A full matrix that is not symmetric.
    #[error(
        "from city {from} to {to} it is {there}, but {back} back: only the same distance both ways is read"
    )]
    Asymmetric {
        /// City, from 1.
        from: usize,
        /// City, from 1.
        to: usize,
        /// The distance.
        there: u32,
        /// The other distance.
        back: u32,
    },
    /// A line of coordinates that is none.
    #[error("`{0}` is no city: write its number and two coordinates")]
    Coordinates(Word),
    /// The number of a city that is none.
    #[error("city `{found}`: must be 1 to {cities}")]
    City {
        /// As written.
        found: Word,
        /// The number of cities that there are.
        cities: usize,
    },
    /// Coordinates for the second time.
    #[error("city {city} has coordinates twice: first in line {first}")]
    CityTwice {
        /// The city, from 1.
        city: usize,
        /// Line of the first.
        first: usize,
    },
    /// A city without coordinates.
    #[error("city {0} has no coordinates")]
    CityMissing(usize),
    /// Two cities too far apart.
    #[error("from city {from} to {to} it is farther than 4294967295")]
    TooFar {
        /// City, from 1.
        from: usize,
        /// City, from 1.
        to: usize,
    },
    /// The end, and no distances so far.
    #[error("the file ends without distances: `{0}` is missing")]
    Missing(&'static str),
}

/// A piece of the file in a message, cut to a length a person can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(String);

impl Word {
    /// The longest piece shown, in characters.
    pub const LONGEST: usize = 40;

    pub(super) fn new(text: &str) -> Self {
        match text.char_indices().nth(Self::LONGEST) {
            None => Self(text.to_owned()),
            Some((end, _)) => Self(format!("{}...", &text[..end])),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
