//! The reader of `.bench` netlists, the format in which the ISCAS'89 circuits are handed around.
//!
//! ```text
//! # a comment, to the end of the line
//! INPUT(net)
//! OUTPUT(net)
//! net = GATE(net, net, ...)        DFF AND NAND OR NOR XOR XNOR NOT BUFF, also BUF
//! ```
//!
//! Blanks and tabs may stand anywhere but inside a word. Lines end in LF or CRLF. A byte-order mark
//! is skipped. Nets may be used before they are defined. Names are case-sensitive and any text
//! without blanks, control characters, parentheses, commas, `=` and `#`. Keywords are upper case,
//! as in every published file. Another case is an error that tells so, instead of calling `dff`
//! unknown.
//!
//! The file is taken as bytes, not `str`, so that a binary file is refused with its line. The
//! limits are [`MAX_LINE`] and [`MAX_NETS`]; a longer line is refused before it is looked at. Time
//! is linear in the length of the file.
//!
//! Source of the format: F. Brglez, D. Bryan, K. Kozminski, *Combinational profiles of sequential
//! benchmark circuits*, ISCAS 1989.

use super::error::{ParseError, Reason, Shown};
use super::gate::Kind;
use super::levels::levelize;
use super::netlist::{Driver, Net, Netlist};
use std::collections::HashMap;

/// The longest line read, in bytes without its end. The longest in the ISCAS'89 set has a few
/// hundred.
pub const MAX_LINE: usize = 65_536;

/// The most nets a circuit may have.
pub const MAX_NETS: usize = 1 << 24;

/// One line, understood.
enum Statement<'a> {
    Output(&'a str),
    Define { net: &'a str, kind: Kind, inputs: Vec<&'a str> },
}

/// A net as its line defines it, before names are resolved.
struct Definition<'a> {
    /// The number of the line.
    line: usize,
    /// The kind of driver.
    kind: Kind,
    /// The names of the nets that it reads.
    inputs: Vec<&'a str>,
}

impl Netlist {
    /// Reads a `.bench` netlist. Time and space grow linearly with its length.
    ///
    /// # Errors
    ///
    /// The first line that is wrong, or the fault of the whole; see [`Reason`](super::Reason).
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        parse(text)
    }
}

impl core::str::FromStr for Netlist {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text.as_bytes())
    }
}

fn parse(text: &[u8]) -> Result<Netlist, ParseError> {
    let mut names: Vec<String> = Vec::new();
    let mut definitions: Vec<Definition<'_>> = Vec::new();
    let mut by_name: HashMap<&str, Net> = HashMap::new();
    let mut outputs: Vec<(usize, &str)> = Vec::new();
    let mut output_lines: HashMap<&str, usize> = HashMap::new();
    let mut last = 1;

    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for (line, bytes) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let at = |reason| ParseError { line, reason };
        match statement(bytes).map_err(at)? {
            None => continue,
            Some(Statement::Output(net)) => {
                if let Some(first) = output_lines.insert(net, line) {
                    return Err(at(Reason::OutputTwice { net: Shown::new(net), first }));
                }
                outputs.push((line, net));
            }
            Some(Statement::Define { net, kind, inputs }) => {
                if names.len() == MAX_NETS {
                    return Err(at(Reason::TooManyNets { limit: MAX_NETS }));
                }
                if let Some(first) = by_name.insert(net, names.len() as Net) {
                    let first = definitions[first as usize].line;
                    return Err(at(Reason::Redefined { net: Shown::new(net), first }));
                }
                names.push(net.to_owned());
                definitions.push(Definition { line, kind, inputs });
            }
        }
        last = line;
    }
    if outputs.is_empty() {
        let reason = if names.is_empty() { Reason::Empty } else { Reason::NoOutput };
        return Err(ParseError { line: last, reason });
    }

    let resolve = |line: usize, net: &str| {
        let undefined = || ParseError { line, reason: Reason::Undefined { net: Shown::new(net) } };
        by_name.get(net).copied().ok_or_else(undefined)
    };
    let mut lines = Vec::with_capacity(definitions.len());
    let mut drivers = Vec::with_capacity(definitions.len());
    for Definition { line, kind, inputs } in definitions {
        let inputs =
            inputs.into_iter().map(|net| resolve(line, net)).collect::<Result<Vec<_>, _>>()?;
        lines.push(line);
        drivers.push(Driver { kind, inputs });
    }
    let outputs =
        outputs.into_iter().map(|(line, net)| resolve(line, net)).collect::<Result<Vec<_>, _>>()?;

    let (order, depth) = levelize(&drivers).map_err(|nets| ParseError {
        line: lines[nets[0] as usize],
        reason: Reason::Loop {
            length: nets.len(),
            nets: nets
                .iter()
                .take(Reason::LOOP_SHOWN)
                .map(|&net| Shown::new(&names[net as usize]))
                .collect(),
        },
    })?;
    Ok(Netlist { names, drivers, outputs, order, depth })
}

/// Returns the statement of a line, or `None` for a blank line or a comment.
fn statement(bytes: &[u8]) -> Result<Option<Statement<'_>>, Reason> {
    if bytes.len() > MAX_LINE {
        return Err(Reason::LineTooLong { length: bytes.len(), limit: MAX_LINE });
    }
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let line = str::from_utf8(bytes)
        .map_err(|error| Reason::NotText { column: error.valid_up_to() + 1 })?;
    if let Some((index, character)) =
        line.char_indices().find(|&(_, character)| character.is_control() && character != '\t')
    {
        return Err(Reason::ControlCharacter { character, column: index + 1 });
    }
    let line = line.split_once('#').map_or(line, |(before, _comment)| before).trim();
    if line.is_empty() {
        return Ok(None);
    }
    match line.split_once('=') {
        Some((net, call)) => definition(net.trim(), call.trim()).map(Some),
        None => declaration(line).map(Some),
    }
}

/// `INPUT(net)` or `OUTPUT(net)`.
fn declaration(line: &str) -> Result<Statement<'_>, Reason> {
    let word = line.split('(').next().unwrap_or(line).trim();
    let keyword = match word {
        "INPUT" => "INPUT",
        "OUTPUT" => "OUTPUT",
        _ => {
            for expected in ["INPUT", "OUTPUT"] {
                if word.eq_ignore_ascii_case(expected) {
                    return Err(Reason::WrongCase { found: Shown::new(word), expected });
                }
            }
            return Err(Reason::UnknownStatement { found: Shown::new(line) });
        }
    };
    let nets = arguments(line)?;
    let &[net] = nets.as_slice() else {
        return Err(Reason::WrongInputs { keyword, wanted: "exactly one net", found: nets.len() });
    };
    Ok(match keyword {
        "INPUT" => Statement::Define { net, kind: Kind::Input, inputs: Vec::new() },
        _ => Statement::Output(net),
    })
}

/// `net = GATE(net, ...)`, without the `=`.
fn definition<'a>(net: &'a str, call: &'a str) -> Result<Statement<'a>, Reason> {
    let net = name(net, "before `=`")?;
    let word = call.split('(').next().unwrap_or(call).trim();
    if word.is_empty() {
        return Err(Reason::UnknownGate { found: Shown::new(call) });
    }
    let Some(kind) = Kind::from_word(word) else {
        return Err(match Kind::from_word(&word.to_ascii_uppercase()) {
            Some(kind) => Reason::WrongCase { found: Shown::new(word), expected: kind.word() },
            None => Reason::UnknownGate { found: Shown::new(word) },
        });
    };
    let inputs = arguments(call)?;
    let unary = match kind {
        Kind::Gate(gate) => gate.is_unary(),
        Kind::FlipFlop | Kind::Input => true,
    };
    let (fits, wanted) = if unary {
        (inputs.len() == 1, "exactly one input")
    } else {
        (inputs.len() >= 2, "two or more inputs")
    };
    if !fits {
        return Err(Reason::WrongInputs { keyword: kind.word(), wanted, found: inputs.len() });
    }
    Ok(Statement::Define { net, kind, inputs })
}

/// The names between the parentheses of `WORD(name, ...)`.
fn arguments(call: &str) -> Result<Vec<&str>, Reason> {
    let Some((word, rest)) = call.split_once('(') else {
        return Err(Reason::MissingOpen { after: Shown::new(call) });
    };
    debug_assert!(!word.is_empty(), "the caller has recognized the word");
    let Some((list, trailing)) = rest.split_once(')') else {
        return Err(Reason::MissingClose);
    };
    if !trailing.trim().is_empty() {
        return Err(Reason::TrailingText { found: Shown::new(trailing.trim()) });
    }
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    list.split(',').map(|net| name(net.trim(), "between the parentheses")).collect()
}

fn name<'a>(text: &'a str, position: &'static str) -> Result<&'a str, Reason> {
    if text.is_empty() {
        return Err(Reason::MissingName { position });
    }
    let forbidden = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '=');
    if text.contains(forbidden) {
        return Err(Reason::BadName { found: Shown::new(text) });
    }
    Ok(text)
}
