//! The reader of TSPLIB files, the format in which instances of the travelling salesman problem are
//! handed around.
//!
//! ```text
//! KEYWORD: value                    blanks around the colon are free
//! NAME, COMMENT                     any text
//! TYPE                              TSP
//! DIMENSION                         cities
//! EDGE_WEIGHT_TYPE                  EXPLICIT, EUC_2D, CEIL_2D, GEO, ATT
//! EDGE_WEIGHT_FORMAT                FULL_MATRIX, UPPER_ROW, LOWER_ROW, UPPER_DIAG_ROW,
//!                                   LOWER_DIAG_ROW; with EXPLICIT
//! NODE_COORD_TYPE, DISPLAY_DATA_TYPE   any; they change no distance
//! EDGE_WEIGHT_SECTION               then the distances, over any lines; with EXPLICIT
//! NODE_COORD_SECTION                then a line for each city: number, coordinate, coordinate;
//!                                   without EXPLICIT
//! DISPLAY_DATA_SECTION              then a line for each city; passed over
//! EOF                               may be missing
//! ```
//!
//! The keywords before a section must be enough to understand it. The file is taken as bytes, not
//! `str`, so that a binary file is refused with its line. The limits are [`MAX_LINE`] and
//! [`MAX_CITIES`]. A dimension beyond is refused before anything is allocated. Time and memory are
//! linear in the number of distances.
//!
//! Source of the format: G. Reinelt, *TSPLIB 95*, Universität Heidelberg, 1995.

use super::distance::Metric;
use super::error::{ParseError, Reason, Word};
use super::instance::Instance;

/// The longest line read, in bytes without its end. A full matrix may have a row of [`MAX_CITIES`]
/// in one line.
pub const MAX_LINE: usize = 1 << 16;

/// The most cities read: their distances take 64 MiB. (How many can be *searched* is another
/// question: [`Refused`](super::Refused).)
pub const MAX_CITIES: usize = 4_096;

/// The form in which the distances are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weights {
    Explicit,
    From(Metric, &'static str),
}

impl Weights {
    fn name(self) -> &'static str {
        match self {
            Self::Explicit => "EXPLICIT",
            Self::From(_, name) => name,
        }
    }
}

/// The part of the matrix that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Full,
    /// With the diagonal or without.
    Upper(bool),
    Lower(bool),
}

impl Format {
    /// Returns the number of distances.
    fn count(self, cities: usize) -> usize {
        match self {
            Self::Full => cities * cities,
            Self::Upper(true) | Self::Lower(true) => cities * (cities + 1) / 2,
            Self::Upper(false) | Self::Lower(false) => cities * (cities - 1) / 2,
        }
    }

    /// The columns of a row that are given.
    fn columns(self, row: usize, cities: usize) -> core::ops::Range<usize> {
        match self {
            Self::Full => 0..cities,
            Self::Upper(diagonal) => (row + usize::from(!diagonal)).min(cities)..cities,
            Self::Lower(diagonal) => 0..row + usize::from(diagonal),
        }
    }
}

/// Lines that are no section of their own, with what has been read from them.
#[derive(Default)]
struct Header {
    /// The name of the instance.
    name: String,
    /// The number of cities, once it is known.
    cities: Option<usize>,
    /// The form of the distances, once it is known.
    weights: Option<Weights>,
    /// The part of the matrix, once it is known.
    format: Option<Format>,
    /// The keywords that have come, and their lines.
    seen: Vec<(&'static str, usize)>,
}

/// The use of the next line.
enum Section {
    Header,
    Matrix {
        distances: Vec<u32>,
        format: Format,
        cities: usize,
    },
    Coordinates {
        points: Vec<Option<(usize, f64, f64)>>,
        metric: Metric,
    },
    /// Lines of the picture of the instance that are still to come.
    Display(usize),
}

const KEYWORDS: [&str; 12] = [
    "NAME",
    "COMMENT",
    "TYPE",
    "DIMENSION",
    "EDGE_WEIGHT_TYPE",
    "EDGE_WEIGHT_FORMAT",
    "NODE_COORD_TYPE",
    "DISPLAY_DATA_TYPE",
    "EDGE_WEIGHT_SECTION",
    "NODE_COORD_SECTION",
    "DISPLAY_DATA_SECTION",
    "EOF",
];

impl Instance {
    /// Reads a file of TSPLIB: symmetric, with a matrix (`FULL_MATRIX`, `UPPER_ROW`, `LOWER_ROW`,
    /// `UPPER_DIAG_ROW`, `LOWER_DIAG_ROW`) or with coordinates (`EUC_2D`, `CEIL_2D`, `GEO`, `ATT`).
    ///
    /// ```
    /// use stanchion_applications::tsp::Instance;
    /// let text = b"DIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n\
    ///     1 0 0\n2 3 4\n3 0 4\nEOF\n";
    /// let instance = Instance::parse(text)?;
    /// assert_eq!(instance.length(&[0, 1, 2]), 5 + 3 + 4);
    /// # Ok::<(), stanchion_applications::tsp::ParseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ParseError`]: the line, and its fault.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        parse(text)
    }
}

fn parse(text: &[u8]) -> Result<Instance, ParseError> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut header = Header::default();
    let mut section = Section::Header;
    let mut instance = None;
    let mut last = 1;
    for (line, bytes) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let at = |reason| ParseError { line, reason };
        let words = line_of(bytes).map_err(at)?;
        if words.is_empty() {
            continue;
        }
        last = line;
        if let Some(keyword) = keyword(words) {
            if let Some(found) = header.close(section).map_err(at)? {
                instance = Some(found);
            }
            if keyword == "EOF" {
                section = Section::Header;
                break;
            }
            section = header.take(keyword, words, line).map_err(at)?;
            continue;
        }
        match &mut section {
            Section::Header => {
                let word = words.split([':', ' ', '\t']).next().unwrap_or(words);
                return Err(at(Reason::UnknownKeyword(Word::new(word))));
            }
            Section::Matrix { distances, format, cities } => {
                let expected = format.count(*cities);
                for word in words.split_ascii_whitespace() {
                    if distances.len() == expected {
                        let found = Word::new(word);
                        return Err(at(Reason::ManyDistances { found, expected }));
                    }
                    let distance = word.parse();
                    distances.push(distance.map_err(|_| at(Reason::Distance(Word::new(word))))?);
                }
            }
            Section::Coordinates { points, .. } => city(words, line, points).map_err(at)?,
            Section::Display(0) => {
                return Err(at(Reason::UnknownKeyword(Word::new(words))));
            }
            Section::Display(left) => *left -= 1,
        }
    }
    let at = |reason| ParseError { line: last, reason };
    if let Some(found) = header.close(section).map_err(at)? {
        instance = Some(found);
    }
    let missing = match header.weights {
        Some(Weights::From(..)) => "NODE_COORD_SECTION",
        _ => "EDGE_WEIGHT_SECTION",
    };
    let mut instance = instance.ok_or_else(|| at(Reason::Missing(missing)))?;
    instance.rename(header.name);
    Ok(instance)
}

/// Returns the text of a line, without blanks around it.
fn line_of(bytes: &[u8]) -> Result<&str, Reason> {
    if bytes.len() > MAX_LINE {
        return Err(Reason::LineTooLong { length: bytes.len(), limit: MAX_LINE });
    }
    let line = str::from_utf8(bytes)
        .map_err(|error| Reason::NotText { column: error.valid_up_to() + 1 })?
        .trim_ascii();
    match line.char_indices().find(|(_, letter)| letter.is_control() && *letter != '\t') {
        Some((index, _)) => Err(Reason::NotText { column: index + 1 }),
        None => Ok(line),
    }
}

/// The keyword with which a line begins, if it does.
fn keyword(line: &str) -> Option<&'static str> {
    let word = line.split([':', ' ', '\t']).next()?;
    KEYWORDS.into_iter().find(|keyword| *keyword == word)
}

impl Header {
    /// Reads a line that begins with `keyword`. Returns the use of the next line.
    fn take(&mut self, keyword: &'static str, words: &str, line: usize) -> Result<Section, Reason> {
        if keyword != "COMMENT" {
            if let Some(&(_, first)) = self.seen.iter().find(|(seen, _)| *seen == keyword) {
                return Err(Reason::Twice { keyword, first });
            }
            self.seen.push((keyword, line));
        }
        if let Some(section) = self.section(keyword)? {
            return Ok(section);
        }
        let value = words[keyword.len()..].trim_start();
        let value = value.strip_prefix(':').unwrap_or(value).trim();
        match keyword {
            "NAME" => value.clone_into(&mut self.name),
            // Some files name the problem in the same line: `TYPE: TSP (M.~Hofmeister)`.
            "TYPE" if value.split_ascii_whitespace().next() == Some("TSP") => (),
            "TYPE" => return Err(Reason::Type(Word::new(value))),
            _ if value.is_empty() && keyword != "COMMENT" => return Err(Reason::NoValue(keyword)),
            "DIMENSION" => {
                let cities = value.parse().ok().filter(|cities| (3..=MAX_CITIES).contains(cities));
                let refused = || Reason::Dimension { found: Word::new(value), limit: MAX_CITIES };
                self.cities = Some(cities.ok_or_else(refused)?);
            }
            "EDGE_WEIGHT_TYPE" => {
                self.weights = Some(match value {
                    "EXPLICIT" => Weights::Explicit,
                    "EUC_2D" => Weights::From(Metric::Euclidean, "EUC_2D"),
                    "CEIL_2D" => Weights::From(Metric::Ceiling, "CEIL_2D"),
                    "GEO" => Weights::From(Metric::Geographical, "GEO"),
                    "ATT" => Weights::From(Metric::Att, "ATT"),
                    other => return Err(Reason::WeightType(Word::new(other))),
                });
            }
            "EDGE_WEIGHT_FORMAT" => {
                self.format = match value {
                    "FULL_MATRIX" => Some(Format::Full),
                    "UPPER_ROW" => Some(Format::Upper(false)),
                    "LOWER_ROW" => Some(Format::Lower(false)),
                    "UPPER_DIAG_ROW" => Some(Format::Upper(true)),
                    "LOWER_DIAG_ROW" => Some(Format::Lower(true)),
                    // What files with coordinates say.
                    "FUNCTION" => None,
                    other => return Err(Reason::WeightFormat(Word::new(other))),
                };
            }
            _ => (),
        }
        Ok(Section::Header)
    }

    /// Begins the section called `keyword`, if it is one.
    fn section(&self, section: &'static str) -> Result<Option<Section>, Reason> {
        if !section.ends_with("_SECTION") {
            return Ok(None);
        }
        let needs = |needed| Reason::Needs { section, needed };
        let cities = self.cities.ok_or_else(|| needs("DIMENSION"))?;
        if section == "DISPLAY_DATA_SECTION" {
            return Ok(Some(Section::Display(cities)));
        }
        let weights = self.weights.ok_or_else(|| needs("EDGE_WEIGHT_TYPE"))?;
        match (section, weights) {
            ("EDGE_WEIGHT_SECTION", Weights::Explicit) => {
                let format = self.format.ok_or_else(|| needs("EDGE_WEIGHT_FORMAT"))?;
                let distances = Vec::new();
                Ok(Some(Section::Matrix { distances, format, cities }))
            }
            ("NODE_COORD_SECTION", Weights::From(metric, _)) => {
                let points = vec![None; cities];
                Ok(Some(Section::Coordinates { points, metric }))
            }
            // Some matrices come with coordinates for a picture.
            ("NODE_COORD_SECTION", Weights::Explicit) => Ok(Some(Section::Display(cities))),
            _ => Err(Reason::WrongSection { section, weights: weights.name() }),
        }
    }

    /// Makes distances of what a section has given.
    fn close(&self, section: Section) -> Result<Option<Instance>, Reason> {
        match section {
            Section::Header | Section::Display(_) => Ok(None),
            Section::Matrix { distances, format, cities } => {
                matrix(&distances, format, cities).map(Some)
            }
            Section::Coordinates { points, metric } => plane(&points, metric).map(Some),
        }
    }
}

/// The distances of a matrix of which a part is given.
fn matrix(given: &[u32], format: Format, cities: usize) -> Result<Instance, Reason> {
    let expected = format.count(cities);
    if given.len() < expected {
        return Err(Reason::FewDistances { found: given.len(), expected });
    }
    let mut firsts = Vec::with_capacity(cities);
    let mut first = 0;
    for row in 0..cities {
        firsts.push(first);
        first += format.columns(row, cities).len();
    }
    let entry =
        |row: usize, column: usize| given[firsts[row] + column - format.columns(row, cities).start];
    if format == Format::Full {
        for row in 0..cities {
            for column in 0..row {
                let (there, back) = (entry(row, column), entry(column, row));
                if there != back {
                    let (from, to) = (row + 1, column + 1);
                    return Err(Reason::Asymmetric { from, to, there, back });
                }
            }
        }
    }
    let upper = matches!(format, Format::Upper(_));
    Ok(Instance::new("", cities, |a, b| if upper { entry(b, a) } else { entry(a, b) }))
}

/// A line with the number of a city and its coordinates.
fn city(words: &str, line: usize, points: &mut [Option<(usize, f64, f64)>]) -> Result<(), Reason> {
    let bad = || Reason::Coordinates(Word::new(words));
    let mut parts = words.split_ascii_whitespace();
    let (Some(number), Some(x), Some(y), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad());
    };
    let coordinate =
        |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(bad);
    let (x, y) = (coordinate(x)?, coordinate(y)?);
    let cities = points.len();
    let city = number.parse().ok().filter(|city| (1..=cities).contains(city));
    let city: usize = city.ok_or_else(|| Reason::City { found: Word::new(number), cities })?;
    if let Some((first, ..)) = points[city - 1] {
        return Err(Reason::CityTwice { city, first });
    }
    points[city - 1] = Some((line, x, y));
    Ok(())
}

/// The distances of cities with coordinates.
fn plane(points: &[Option<(usize, f64, f64)>], metric: Metric) -> Result<Instance, Reason> {
    let mut coordinates = Vec::with_capacity(points.len());
    for (point, city) in points.iter().zip(1..) {
        let &(_, x, y) = point.as_ref().ok_or(Reason::CityMissing(city))?;
        coordinates.push((x, y));
    }
    let mut far = None;
    let instance = Instance::new("", points.len(), |a, b| {
        metric.distance(coordinates[a], coordinates[b]).unwrap_or_else(|| {
            far.get_or_insert((b + 1, a + 1));
            0
        })
    });
    match far {
        Some((from, to)) => Err(Reason::TooFar { from, to }),
        None => Ok(instance),
    }
}
