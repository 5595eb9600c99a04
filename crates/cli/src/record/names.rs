//! From paths and offsets to names that a person knows.
//!
//! | in the table | with symbols | without |
//! | --- | --- | --- |
//! | `S/usr/lib/libx.so+0x5c10`: a static | `libx.so: queue_lock` | `libx.so: static at 0x5c10` |
//! | `C/usr/bin/prog+0x1f2b4`: called from there | `prog: in work+0x14` | `prog: in 0x1f2b4` |
//! | `P/bin/x+0x1f+0x2c`: in `futex` | `x: std Mutex in work` | `x: futex in 0x1f < 0x2c` |
//! | `P?`: the same from nowhere known | `unknown` | `unknown` |
//! | `C?`: called from nowhere known | `unknown` | `unknown` |
//!
//! Offsets count from where the file's beginning is mapped, which is its first segment's lowest
//! page.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use stanchion_competitive::waits::shared::Gathered;
use stanchion_competitive::waits::{self, Distribution};

use super::calls::{Class, Wait};

/// The waits of a program.
pub(super) struct Named {
    /// Those for locks, by name.
    pub(super) locks: Vec<(String, Distribution)>,
    /// The others, by kind and name.
    pub(super) others: Vec<(Class, String, Distribution)>,
    /// True if a static or a function, or one on the path of a wait, has no name.
    pub(super) nameless: bool,
}

/// Returns the waits by name. Places that have the same name are one.
pub(super) fn named(gathered: &Gathered) -> Named {
    let mut files = BTreeMap::<&str, Symbols>::new();
    let mut all = BTreeMap::<(Class, String), Distribution>::new();
    let mut nameless = false;
    for (place, waits) in &gathered.locks {
        let (class, name, known) = name(place, &mut files);
        nameless |= !known;
        match all.entry((class, cut(&name))) {
            Entry::Vacant(entry) => {
                entry.insert(waits.clone());
            }
            Entry::Occupied(mut entry) => {
                // Of one recording, so of one unit.
                let _ = entry.get_mut().merge(waits);
            }
        }
    }
    let mut named = Named { locks: Vec::new(), others: Vec::new(), nameless };
    for ((class, name), waits) in all {
        match class {
            Class::Lock => named.locks.push((name, waits)),
            _ => named.others.push((class, name, waits)),
        }
    }
    named
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

/// Returns the kind of wait and the name of a place, and whether the program's function is known.
fn name<'t>(place: &'t str, files: &mut BTreeMap<&'t str, Symbols>) -> (Class, String, bool) {
    let Some((kind, path, offsets)) = parse(place) else {
        let class = if place.starts_with('P') { Class::Unknown } else { Class::Lock };
        return (class, String::from("unknown"), true);
    };
    let file = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    let symbols = files.entry(path).or_insert_with(|| Symbols::read(Path::new(path)));
    if kind == Kind::Path {
        let functions: Vec<Option<String>> =
            offsets.iter().map(|&at| symbols.at(at, kind).map(|(name, _)| name)).collect();
        let wait = Wait::of(&functions);
        let nameless = || {
            let calls = offsets.iter().zip(&functions).filter(|(_, function)| function.is_none());
            let calls: Vec<String> = calls.take(CALLS).map(|(at, _)| format!("{at:#x}")).collect();
            calls.join(" < ")
        };
        let place = wait.function.clone().unwrap_or_else(nameless);
        let place = if place.is_empty() { place } else { format!(" in {place}") };
        let known = functions.iter().all(Option::is_some) || wait.function.is_some();
        return (wait.class, format!("{file}: {}{place}", wait.entry), known);
    }
    let offset = offsets[0];
    let name = match (kind, symbols.at(offset, kind)) {
        (Kind::Static, Some((symbol, 0))) => format!("{file}: {symbol}"),
        (Kind::Static, Some((symbol, within))) => format!("{file}: {symbol}+{within:#x}"),
        (Kind::Static, None) => format!("{file}: static at {offset:#x}"),
        (_, Some((symbol, within))) => format!("{file}: in {symbol}+{within:#x}"),
        (_, None) => format!("{file}: in {offset:#x}"),
    };
    let known = !is_bare(&name);
    (Class::Lock, name, known)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Static,
    Call,
    /// A path of calls.
    Path,
}

/// Takes a place apart: its kind, its path, and one offset or more.
fn parse(place: &str) -> Option<(Kind, &str, Vec<u64>)> {
    let (kind, mut path) = match place.split_at_checked(1)? {
        ("S", rest) => (Kind::Static, rest),
        ("C", rest) => (Kind::Call, rest),
        ("P", rest) => (Kind::Path, rest),
        _ => return None,
    };
    let mut offsets = Vec::new();
    while let Some((rest, offset)) = path.rsplit_once("+0x") {
        let Ok(offset) = u64::from_str_radix(offset, 16) else { break };
        offsets.push(offset);
        path = rest;
        if kind != Kind::Path {
            break;
        }
    }
    offsets.reverse();
    (!offsets.is_empty()).then(|| (kind, path.trim_end_matches(" (deleted)"), offsets))
}

/// The symbols of a file, by address.
#[derive(Default)]
struct Symbols {
    /// Where its lowest page lies by its own reckoning.
    base: u64,
    /// Address, size and name of each function.
    functions: Vec<(u64, u64, String)>,
    /// Address, size and name of each datum.
    data: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// None if the file cannot be read or has none. Those of a file that was stripped are where a
    /// package of debug symbols puts them.
    fn read(path: &Path) -> Self {
        let Ok(bytes) = std::fs::read(path) else { return Self::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Self::default() };
        let base = file.segments().map(|segment| segment.address() & !0xFFF).min().unwrap_or(0);
        let mut symbols = Self { base, ..Self::default() };
        symbols.add(&file);
        if let Some(apart) = debug_file(&file).filter(|_| file.symbols().next().is_none())
            && let Ok(bytes) = std::fs::read(apart)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            symbols.add(&file);
        }
        symbols.functions.sort();
        symbols.data.sort();
        symbols
    }

    fn add(&mut self, file: &object::File<'_>) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_undefined() || name.is_empty() {
                continue;
            }
            let entry = (symbol.address(), symbol.size(), name.to_owned());
            match symbol.kind() {
                SymbolKind::Text => self.functions.push(entry),
                SymbolKind::Data => self.data.push(entry),
                _ => {}
            }
        }
    }

    /// The symbol that an offset lies in, and how far.
    fn at(&self, offset: u64, kind: Kind) -> Option<(String, u64)> {
        let address = self.base.checked_add(offset)?;
        let symbols = match kind {
            Kind::Static => &self.data,
            Kind::Call | Kind::Path => &self.functions,
        };
        let after = symbols.partition_point(|symbol| symbol.0 <= address);
        // Several may begin together, and one that is longer may begin before: look at some.
        let found = symbols[..after].iter().rev().take(8);
        let (start, _, name) =
            found.into_iter().find(|symbol| address - symbol.0 < symbol.1.max(1))?;
        Some((demangled(name), address - start))
    }
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

/// The file of debug symbols of a file with that build ID.
fn debug_file(file: &object::File<'_>) -> Option<PathBuf> {
    let id = file.build_id().ok()??;
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = digits.split_at_checked(2)?;
    Some(PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug")))
}

fn demangled(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        return format!("{name:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

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
        assert_eq!(path, Some((Kind::Path, "/usr/bin/x", vec![0x10, 0x2f])));
        for (place, class, said) in [
            ("C?", Class::Lock, "unknown"),
            ("P?", Class::Unknown, "unknown"),
            ("S/none/x+0x1f", Class::Lock, "x: static at 0x1f"),
            ("C/none/x+0x1f", Class::Lock, "x: in 0x1f"),
            ("P/none/x+0x1f+0x2", Class::Unknown, "x: futex in 0x1f < 0x2"),
        ] {
            let (found, name, _) = name(place, &mut BTreeMap::new());
            assert_eq!((found, name.as_str()), (class, said), "{place}");
        }
    }

    #[test]
    fn symbols_are_found_by_address_and_demangled() {
        let symbols = Symbols {
            base: 0x1000,
            functions: vec![(0x1100, 0x20, "_ZN5queue4pushEi".into())],
            data: vec![(0x1200, 40, "queue_lock".into())],
        };
        let at = |offset, kind| symbols.at(offset, kind);
        assert_eq!(at(0x100, Kind::Call), Some(("queue::push".into(), 0)));
        assert_eq!(at(0x11f, Kind::Call), Some(("queue::push".into(), 0x1f)));
        assert_eq!(at(0x120, Kind::Call), None);
        assert_eq!(at(0xff, Kind::Call), None);
        assert_eq!(at(0x208, Kind::Static), Some(("queue_lock".into(), 8)));
        assert_eq!(at(u64::MAX, Kind::Static), None);
    }

    #[test]
    fn rust_and_c_plus_plus_are_demangled() {
        for (symbol, name) in [
            ("_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str"),
            ("_RNvCs4fqI2P2rA04_5queue4push", "queue::push"),
            ("_ZN5queue4pushEi.constprop.0", "queue::push"),
            (
                "_ZNSt5dequeIiSaIiEE9push_backERKi",
                "std::deque<int, std::allocator<int> >::push_back",
            ),
            ("queue_push", "queue_push"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(demangled(symbol), name, "{symbol}");
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
        let me = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*me).unwrap();
        if let Some(path) = debug_file(&file) {
            assert!(path.starts_with("/usr/lib/debug/.build-id"), "{}", path.display());
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_text() {
        let long = cut(&"ü".repeat(100));
        assert!(long.len() <= waits::MAX_NAME && long.contains("ü…ü"), "{long}");
        assert_eq!(cut("a\nb"), "a?b");
    }
}
