//! From paths and offsets to names that a person knows.
//!
//! | in the table | with symbols | without |
//! | --- | --- | --- |
//! | `S/usr/lib/libx.so+0x5c10`: a static | `libx.so: queue_lock` | `libx.so: static at 0x5c10` |
//! | `C/usr/bin/prog+0x1f2b4`: called from there | `prog: in work+0x14` | `prog: in 0x1f2b4` |
//! | `C?`: called from nowhere known | `unknown` | `unknown` |
//!
//! Offsets count from where the file's beginning is mapped, which is its first segment's lowest
//! page.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use stanchion_competitive::waits::shared::Gathered;
use stanchion_competitive::waits::{self, Distribution};

/// The waits by name. Places that have the same name are one.
pub(super) fn named(gathered: &Gathered) -> Vec<(String, Distribution)> {
    let mut files = BTreeMap::<&str, Symbols>::new();
    let mut locks = BTreeMap::<String, Distribution>::new();
    for (place, waits) in &gathered.locks {
        let name = name(place, &mut files);
        match locks.entry(cut(&name)) {
            Entry::Vacant(entry) => {
                entry.insert(waits.clone());
            }
            Entry::Occupied(mut entry) => {
                // Of one recording, so of one unit.
                let _ = entry.get_mut().merge(waits);
            }
        }
    }
    locks.into_iter().collect()
}

/// Of printable characters, and as long as a recording's names may be.
fn cut(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.len() <= waits::MAX_NAME {
        return name;
    }
    let end = name.floor_char_boundary(waits::MAX_NAME - '…'.len_utf8());
    format!("{}…", &name[..end])
}

fn name<'t>(place: &'t str, files: &mut BTreeMap<&'t str, Symbols>) -> String {
    let Some((kind, path, offset)) = parse(place) else { return String::from("unknown") };
    let file = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    let symbols = files.entry(path).or_insert_with(|| Symbols::read(Path::new(path)));
    match (kind, symbols.at(offset, kind)) {
        (Kind::Static, Some((symbol, 0))) => format!("{file}: {symbol}"),
        (Kind::Static, Some((symbol, within))) => format!("{file}: {symbol}+{within:#x}"),
        (Kind::Static, None) => format!("{file}: static at {offset:#x}"),
        (Kind::Call, Some((symbol, within))) => format!("{file}: in {symbol}+{within:#x}"),
        (Kind::Call, None) => format!("{file}: in {offset:#x}"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Static,
    Call,
}

fn parse(place: &str) -> Option<(Kind, &str, u64)> {
    let (kind, rest) = match place.split_at_checked(1)? {
        ("S", rest) => (Kind::Static, rest),
        ("C", rest) => (Kind::Call, rest),
        _ => return None,
    };
    let (path, offset) = rest.rsplit_once("+0x")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    Some((kind, path.trim_end_matches(" (deleted)"), offset))
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
    /// None if the file cannot be read or has none.
    fn read(path: &Path) -> Self {
        let Ok(bytes) = std::fs::read(path) else { return Self::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Self::default() };
        let base = file.segments().map(|segment| segment.address() & !0xFFF).min().unwrap_or(0);
        let mut symbols = Self { base, ..Self::default() };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_undefined() || name.is_empty() {
                continue;
            }
            let entry = (symbol.address(), symbol.size(), name.to_owned());
            match symbol.kind() {
                SymbolKind::Text => symbols.functions.push(entry),
                SymbolKind::Data => symbols.data.push(entry),
                _ => {}
            }
        }
        symbols.functions.sort();
        symbols.data.sort();
        symbols
    }

    /// The symbol that an offset lies in, and how far.
    fn at(&self, offset: u64, kind: Kind) -> Option<(String, u64)> {
        let address = self.base.checked_add(offset)?;
        let symbols = match kind {
            Kind::Static => &self.data,
            Kind::Call => &self.functions,
        };
        let after = symbols.partition_point(|symbol| symbol.0 <= address);
        // Several may begin together, and one that is longer may begin before: look at some.
        let found = symbols[..after].iter().rev().take(8);
        let (start, _, name) =
            found.into_iter().find(|symbol| address - symbol.0 < symbol.1.max(1))?;
        Some((demangled(name), address - start))
    }
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
        assert_eq!(parse("S/lib/a+b.so+0x5c10"), Some((Kind::Static, "/lib/a+b.so", 0x5c10)));
        assert_eq!(parse("C/usr/bin/x (deleted)+0x1"), Some((Kind::Call, "/usr/bin/x", 1)));
        for wrong in ["", "C?", "X/bin/x+0x1", "S/bin/x", "S/bin/x+0xg", "é"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(name("C?", &mut BTreeMap::new()), "unknown");
        assert_eq!(name("S/none/x+0x1f", &mut BTreeMap::new()), "x: static at 0x1f");
        assert_eq!(name("C/none/x+0x1f", &mut BTreeMap::new()), "x: in 0x1f");
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
    fn long_names_are_cut_and_stay_text() {
        let long = cut(&"ü".repeat(100));
        assert!(long.len() <= waits::MAX_NAME && long.ends_with("ü…"), "{long}");
        assert_eq!(cut("a\nb"), "a?b");
    }
}
