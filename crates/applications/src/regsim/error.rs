//! Why a netlist was refused.

use core::fmt;
use thiserror::Error;

/// A netlist that was refused: the line and the reason. The caller knows the file and puts its name
/// in front.
///
/// ```
/// use stanchion_applications::regsim::Netlist;
/// let error = Netlist::parse(b"INPUT(a)\nOUTPUT(b)\nb = nand(a, a)\n").unwrap_err();
/// assert_eq!(error.line, 3);
/// assert_eq!(error.to_string(), "line 3: `nand` is in the wrong case: write `NAND`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// The fault.
    pub reason: Reason,
}

/// A fault of a netlist, with its mend if there is one.
///
/// Names are cut to [`Shown::LONGEST`] characters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing but blank lines and comments.
    #[error("the netlist is empty: it has no statement, only blank lines and comments")]
    Empty,
    /// No output, so nothing to observe.
    #[error("the netlist has no output, so nothing can be observed: add `OUTPUT(net)`")]
    NoOutput,
    /// A line beyond [`MAX_LINE`](super::MAX_LINE).
    #[error("the line has {length} bytes, the limit is {limit}: is this a .bench netlist?")]
    LineTooLong {
        /// Its bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// More nets than [`MAX_NETS`](super::MAX_NETS).
    #[error("more than {limit} nets: too large for this simulator")]
    TooManyNets {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are no text.
    #[error("byte {column} of the line is not UTF-8: is this a .bench netlist?")]
    NotText {
        /// The first such byte of the line, counted from 1.
        column: usize,
    },
    /// A control character other than a tab.
    #[error(
        "byte {column} of the line is the control character {character:?}: is this a .bench netlist?"
    )]
    ControlCharacter {
        /// The character.
        character: char,
        /// Its byte in the line, counted from 1.
        column: usize,
    },
    /// A keyword in lower or mixed case.
    #[error("`{found}` is in the wrong case: write `{expected}`")]
    WrongCase {
        /// As written.
        found: Shown,
        /// As it should be.
        expected: &'static str,
    },
    /// No gate of that name.
    #[error(
        "unknown gate `{found}`: known are DFF, AND, NAND, OR, NOR, XOR, XNOR, NOT, BUFF and BUF"
    )]
    UnknownGate {
        /// As written.
        found: Shown,
    },
    /// Neither `INPUT`, nor `OUTPUT`, nor a definition.
    #[error(
        "unknown statement `{found}`: a line is `INPUT(net)`, `OUTPUT(net)` or `net = GATE(net, ...)`"
    )]
    UnknownStatement {
        /// As written.
        found: Shown,
    },
    /// No `(` after the keyword.
    #[error("missing `(` after `{after}`")]
    MissingOpen {
        /// The keyword.
        after: Shown,
    },
    /// No `)` at the end.
    #[error("missing `)` at the end of the line")]
    MissingClose,
    /// Something after the `)`.
    #[error("unexpected `{found}` after the closing `)`")]
    TrailingText {
        /// The text that follows.
        found: Shown,
    },
    /// No name where one must be.
    #[error("missing name of a net {position}")]
    MissingName {
        /// The position in the line.
        position: &'static str,
    },
    /// A name with a character that no name may have.
    #[error("`{found}` is no name of a net: names have no blanks, parentheses, commas or `=`")]
    BadName {
        /// As written.
        found: Shown,
    },
    /// Too few or too many inputs.
    #[error("`{keyword}` has {wanted}, not {found}")]
    WrongInputs {
        /// The gate or statement.
        keyword: &'static str,
        /// The number that it may have.
        wanted: &'static str,
        /// The number that is written.
        found: usize,
    },
    /// A net that is used and never driven.
    #[error(
        "net `{net}` is used here, but nothing drives it: define it with `INPUT({net})` or `{net} = ...`"
    )]
    Undefined {
        /// Its name.
        net: Shown,
    },
    /// A net with two drivers.
    #[error("net `{net}` is defined twice: first in line {first}")]
    Redefined {
        /// Its name.
        net: Shown,
        /// Line of its first definition.
        first: usize,
    },
    /// An output declared twice.
    #[error("`OUTPUT({net})` stands twice: first in line {first}")]
    OutputTwice {
        /// Its name.
        net: Shown,
        /// Line of its first declaration.
        first: usize,
    },
    /// Gates that drive each other in a circle with no flip-flop between.
    #[error("combinational loop of {length}: {}; put a DFF into it", Circle(.nets, *.length))]
    Loop {
        /// Nets of the loop in the direction of the signal, beginning with the one that is defined
        /// first; at most [`Reason::LOOP_SHOWN`] of them.
        nets: Vec<Shown>,
        /// Nets in the whole loop.
        length: usize,
    },
}

impl Reason {
    /// The number of nets of a combinational loop that an error names.
    pub const LOOP_SHOWN: usize = 16;
}

/// A piece of the file in a message, cut to a length a person can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

impl Shown {
    /// The longest piece shown, in characters.
    pub const LONGEST: usize = 48;

    pub(super) fn new(text: &str) -> Self {
        match text.char_indices().nth(Self::LONGEST) {
            None => Self(text.to_owned()),
            Some((end, _)) => Self(format!("{}...", &text[..end])),
        }
    }

    /// The piece, followed by `...` if it was cut.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The nets of a loop and the length of the whole, back to the first: `a -> b -> a`.
struct Circle<'a>(&'a [Shown], usize);

impl fmt::Display for Circle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for net in self.0 {
            write!(f, "{net} -> ")?;
        }
        if self.0.len() < self.1 {
            f.write_str("... -> ")?;
        }
        self.0.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}
