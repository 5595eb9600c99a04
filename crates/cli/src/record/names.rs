//! From paths and offsets to names that a person knows.
//!
//! | in the table | with symbols | without |
//! | --- | --- | --- |
//! | `S/usr/lib/libx.so+0x5c10`: a static | `libx.so: queue_lock` | `libx.so: static at 0x5c10` |
//! | `C/usr/bin/prog+0x1f2b4`: called from there | `prog: in work+0x14` | `prog: in 0x1f2b4` |
//! | `P/bin/x+0x1f+0x2c`: in `futex` | `x: std Mutex in f (x.rs:7)` | `x: futex in 0x1f < 0x2c` |
//! | `T/bin/x+0x1f+0x2c`: in `sleep` | `x: sleep in f (x.rs:9)` | `x: sleep in 0x1f < 0x2c` |
//! | `P?`: the same from nowhere known | `unknown` | `unknown` |
//! | `C?`: called from nowhere known | `unknown` | `unknown` |
//!
//! Offsets count from where the file's beginning is mapped, which is its first segment's lowest
//! page.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use object::SymbolKind;
use stanchion_competitive::waits::shared::Gathered;
use stanchion_competitive::waits::{self, Distribution};

use super::calls::{self, Class, Function, Wait};
use super::symbols::{Call, Symbols};

/// The waits of a program.
pub(super) struct Named {
    /// Those for locks, by name.
    pub(super) locks: Vec<(String, Distribution)>,
    /// The others, by kind and name.
    pub(super) others: Vec<(Class, String, Distribution)>,
    /// All, by path of calls.
    pub(super) paths: Vec<(Place, Distribution)>,
    /// The indices of each place in `locks` and in `paths`, by its name in the table. The first is
    /// known for locks only.
    pub(super) indices: BTreeMap<String, (Option<u32>, u32)>,
    /// True if a static or a function, or one on the path of a wait, has no name.
    pub(super) nameless: bool,
    /// The number of waits that have the name of an earlier one.
    pub(super) unwalked: u64,
}

/// The place of a wait, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The kind of the wait.
    pub(super) class: Class,
    /// The name: the file, the way to wait, and the program's function.
    pub(super) name: String,
    /// The library's way to wait; nothing for a mutex of the C library.
    pub(super) way: String,
    /// The program's calls, the outermost first.
    pub(super) calls: Vec<String>,
}

/// Returns the waits by name. Places that have the same name are one.
pub(super) fn named(gathered: &Gathered) -> Named {
    let mut files = BTreeMap::<&str, Symbols>::new();
    let mut all = BTreeMap::<(Class, String), Distribution>::new();
    let mut paths = BTreeMap::<Place, Distribution>::new();
    let mut nameless = false;
    let mut places = Vec::new();
    for (text, waits) in &gathered.locks {
        let (mut place, known) = name(text, &mut files);
        place.name = cut(&place.name);
        nameless |= !known;
        add(&mut all, (place.class, place.name.clone()), waits);
        places.push((text, place.clone()));
        add(&mut paths, place, waits);
    }
    let mut named = Named {
        locks: Vec::new(),
        others: Vec::new(),
        paths: paths.into_iter().collect(),
        nameless,
        unwalked: gathered.unwalked,
        indices: BTreeMap::new(),
    };
    for ((class, name), waits) in all {
        match class {
            Class::Lock => named.locks.push((name, waits)),
            _ => named.others.push((class, name, waits)),
        }
    }
    // Both lists are in the order of their names.
    for (text, place) in places {
        let lock = named.locks.binary_search_by(|(name, _)| name.cmp(&place.name)).ok();
        let lock = lock.filter(|_| place.class == Class::Lock).map(|lock| lock as u32);
        if let Ok(path) = named.paths.binary_search_by(|(other, _)| other.cmp(&place)) {
            named.indices.insert(text.clone(), (lock, path as u32));
        }
    }
    named
}

fn add<K: Ord>(all: &mut BTreeMap<K, Distribution>, key: K, waits: &Distribution) {
    match all.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(waits.clone());
        }
        Entry::Occupied(mut entry) => {
            // Of one recording, so of one unit.
            let _ = entry.get_mut().merge(waits);
        }
    }
}

/// The names of places that are looked up one by one, with the symbols of their files.
pub(crate) struct Names<'t>(BTreeMap<&'t str, Symbols>);

impl<'t> Names<'t> {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns the kind of wait and the name of a place.
    pub(crate) fn of(&mut self, place: &'t str) -> (Class, String) {
        let (place, _) = name(place, &mut self.0);
        (place.class, cut(&place.name))
    }
}

impl<'t> Names<'t> {
    /// Returns the program's functions of a path of calls, the innermost first, with their lines as
    /// far as they are known. If it has none, returns those of libraries.
    pub(super) fn calls(&mut self, place: &'t str) -> Vec<String> {
        let Some((_, path, offsets)) = parse(place) else { return Vec::new() };
        let file = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
        let symbols = self.0.entry(path).or_insert_with(|| Symbols::read(Path::new(path)));
        let words = |at: u64, call: Call| match (call.function, call.line) {
            (Some(function), Some(line)) => format!("{function} ({line})"),
            (Some(function), None) => function,
            (None, _) => format!("{file}+{at:#x}"),
        };
        let calls = offsets.iter().flat_map(|&at| {
            let calls = symbols.calls(at);
            calls.into_iter().map(move |call| (at, call))
        });
        let calls: Vec<(u64, Call)> = calls.collect();
        let is_own = |(_, call): &(u64, Call)| calls::is_own(call.function.as_deref());
        let has_own = calls.iter().any(is_own);
        let shown = calls.into_iter().filter(|call| !has_own || is_own(call));
        shown.map(|(at, call)| cut(&words(at, call))).collect()
    }
}

/// Of printable characters, and as long as a recording's names may be.
fn cut(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.len() <= waits::MAX_NAME {
        return name;
    }
    // The beginning has the file, the end has the function.
    let half = (waits::MAX_NAME - '…'.len_utf8()) / 2;
    let (begin, end) = (name.floor_char_boundary(half), name.ceil_char_boundary(name.len() - half));
    format!("{}…{}", &name[..begin], &name[end..])
}

/// The most calls of a path that are named by their addresses.
const CALLS: usize = 4;

/// Returns what is known of a place, and whether the program's function is.
fn name<'t>(place: &'t str, files: &mut BTreeMap<&'t str, Symbols>) -> (Place, bool) {
    let Some((kind, path, offsets)) = parse(place) else {
        let waited = place.get(..1).and_then(Function::of);
        let class = waited.map_or(Class::Lock, |waited| Wait::by(waited, &[]).class);
        let way = waited.map_or_else(String::new, |_| String::from("unknown"));
        return (Place { class, name: String::from("unknown"), way, calls: Vec::new() }, true);
    };
    let file = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    let symbols = files.entry(path).or_insert_with(|| Symbols::read(Path::new(path)));
    if let Kind::Path(waited) = kind {
        let each = |&at: &u64| symbols.calls(at).into_iter().map(move |call| (at, call));
        let calls: Vec<(u64, Call)> = offsets.iter().flat_map(each).collect();
        let functions: Vec<_> = calls.iter().map(|(_, call)| call.function.clone()).collect();
        let wait = Wait::by(waited, &functions);
        let nameless = || {
            let calls = calls.iter().filter(|(_, call)| call.function.is_none());
            let calls: Vec<String> = calls.take(CALLS).map(|(at, _)| format!("{at:#x}")).collect();
            calls.join(" < ")
        };
        let words = |at: u64, call: &Call| match (&call.function, &call.line) {
            (Some(function), Some(line)) => format!("{function} ({line})"),
            (Some(function), None) => function.clone(),
            (None, _) => format!("{at:#x}"),
        };
        let line = |function: &String| {
            let call = calls.iter().find(|(_, call)| call.function.as_ref() == Some(function));
            call.map_or_else(|| function.clone(), |(at, call)| words(*at, call))
        };
        let place = wait.function.as_ref().map_or_else(nameless, line);
        let place = if place.is_empty() { place } else { format!(" in {place}") };
        let known = functions.iter().all(Option::is_some) || wait.function.is_some();
        let name = format!("{file}: {}{place}", wait.entry);
        let program = calls[wait.library..].iter().rev();
        let is_own = |(_, call): &&(u64, Call)| calls::is_own(call.function.as_deref());
        let calls = program.filter(is_own).map(|(at, call)| cut(&words(*at, call))).collect();
        return (Place { class: wait.class, name, way: wait.entry, calls }, known);
    }
    let offset = offsets[0];
    let of = if kind == Kind::Static { SymbolKind::Data } else { SymbolKind::Text };
    let name = match (kind, symbols.at(offset, of)) {
        (Kind::Static, Some((symbol, 0))) => format!("{file}: {symbol}"),
        (Kind::Static, Some((symbol, within))) => format!("{file}: {symbol}+{within:#x}"),
        (Kind::Static, None) => format!("{file}: static at {offset:#x}"),
        (_, Some((symbol, within))) => format!("{file}: in {symbol}+{within:#x}"),
        (_, None) => format!("{file}: in {offset:#x}"),
    };
    let known = !is_bare(&name);
    (Place { class: Class::Lock, name, way: String::new(), calls: Vec::new() }, known)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Static,
    Call,
    /// A path of calls to that function.
    Path(Function),
}

/// Takes a place apart: its kind, its path, and one offset or more.
fn parse(place: &str) -> Option<(Kind, &str, Vec<u64>)> {
    let (kind, mut path) = match place.split_at_checked(1)? {
        ("S", rest) => (Kind::Static, rest),
        ("C", rest) => (Kind::Call, rest),
        (letter, rest) => (Kind::Path(Function::of(letter)?), rest),
    };
    let mut offsets = Vec::new();
    while let Some((rest, offset)) = path.rsplit_once("+0x") {
        let Ok(offset) = u64::from_str_radix(offset, 16) else { break };
        offsets.push(offset);
        path = rest;
        if !matches!(kind, Kind::Path(_)) {
            break;
        }
    }
    offsets.reverse();
    (!offsets.is_empty()).then(|| (kind, path.trim_end_matches(" (deleted)"), offsets))
}

/// Returns whether a name has addresses in the place of a function.
pub(crate) fn is_bare(name: &str) -> bool {
    let is_address = |word: &str| {
        let digits = word.strip_prefix("0x").filter(|digits| !digits.is_empty());
        digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let place = [" in ", " static at "].iter().find_map(|word| name.rsplit_once(word));
    place.is_some_and(|(_, calls)| calls.split(" < ").all(is_address))
}

/// The advice to a reader of such names.
pub(crate) const HINT: &str = "\
    Some functions have no names, because the symbols of their files are missing. Install the debug symbols of the program and its libraries \
    (packages in -dbgsym or -debuginfo), or build the program with -g and without `strip` (in Cargo with `debug = \"line-tables-only\"`), and \
    record again.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_apart() {
        assert_eq!(parse("S/lib/a+b.so+0x5c10"), Some((Kind::Static, "/lib/a+b.so", vec![0x5c10])));
        assert_eq!(parse("C/usr/bin/x (deleted)+0x1"), Some((Kind::Call, "/usr/bin/x", vec![1])));
        for wrong in ["", "C?", "X/bin/x+0x1", "S/bin/x", "S/bin/x+0xg", "é"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let path = parse("P/usr/bin/x+0x10+0x2f");
        let futex = Kind::Path(Function::Futex);
        assert_eq!(path, Some((futex, "/usr/bin/x", vec![0x10, 0x2f])));
        for (place, class, said) in [
            ("C?", Class::Lock, "unknown"),
            ("P?", Class::Unknown, "unknown"),
            ("S/none/x+0x1f", Class::Lock, "x: static at 0x1f"),
            ("C/none/x+0x1f", Class::Lock, "x: in 0x1f"),
            ("P/none/x+0x1f+0x2", Class::Unknown, "x: futex in 0x1f < 0x2"),
            ("J?", Class::Join, "unknown"),
            ("R/none/x+0x1f+0x2", Class::Lock, "x: pthread rwlock in 0x1f < 0x2"),
            ("T/none/x+0x1f", Class::Sleep, "x: sleep in 0x1f"),
        ] {
            let (found, _) = name(place, &mut BTreeMap::new());
            assert_eq!((found.class, found.name.as_str()), (class, said), "{place}");
        }
    }

    #[test]
    fn names_without_a_symbol_are_told() {
        for bare in [
            "x: in 0x1f",
            "libx.so: static at 0xabc",
            "program: x: in 0x1f",
            "x: std Mutex in 0x1f < 0x2c00",
        ] {
            assert!(is_bare(bare), "{bare}");
        }
        for name in [
            "x: in work+0x1f",
            "x: lock",
            "unknown",
            "queue",
            "x: in 0x1f and more",
            "x: std Mutex in work",
        ] {
            assert!(!is_bare(name), "{name}");
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_text() {
        let long = cut(&"ü".repeat(100));
        assert!(long.len() <= waits::MAX_NAME && long.contains("ü…ü"), "{long}");
        assert_eq!(cut("a\nb"), "a?b");
    }
}
