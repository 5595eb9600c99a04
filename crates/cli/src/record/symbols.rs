//! The names of functions and statics in a file of a program, and the lines of functions.
//!
//! A file that was stripped has only the names that it exports. Functions that were inlined are
//! known from debug information alone.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// The symbols of a file, by address.
#[derive(Default)]
pub(super) struct Symbols {
    /// Where its lowest page lies by its own reckoning.
    base: u64,
    /// Address, size and name of each function.
    functions: Vec<(u64, u64, String)>,
    /// Address, size and name of each datum.
    data: Vec<(u64, u64, String)>,
    /// Its debug information, with the lines of functions and those inlined into them.
    lines: Option<Lines>,
}

/// The debug information of a file.
type Lines = addr2line::Context<Section>;

/// A part of a file.
type Section = gimli::EndianRcSlice<gimli::LittleEndian>;

/// A function on a path of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// The name, if it is known.
    pub(super) function: Option<String>,
    /// The file and the line of the call in it, if they are known.
    pub(super) line: Option<String>,
}

impl Symbols {
    /// None if the file cannot be read or has none. Those of a file that was stripped are where a
    /// package of debug symbols puts them.
    pub(super) fn read(path: &Path) -> Self {
        let Some(bytes) = contents(path) else { return Self::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Self::default() };
        let base = file.segments().map(|segment| segment.address() & !0xFFF).min().unwrap_or(0);
        let mut symbols = Self { base, ..Self::default() };
        symbols.add(&file);
        symbols.lines = lines(&file);
        if let Some(apart) = debug_file(&file).filter(|_| file.symbols().next().is_none())
            && let Some(bytes) = contents(&apart)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            symbols.add(&file);
            symbols.lines = lines(&file).or(symbols.lines);
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
    pub(super) fn at(&self, offset: u64, kind: SymbolKind) -> Option<(String, u64)> {
        let address = self.base.checked_add(offset)?;
        let symbols = if kind == SymbolKind::Data { &self.data } else { &self.functions };
        let after = symbols.partition_point(|symbol| symbol.0 <= address);
        // Several may begin together, and one that is longer may begin before: look at some.
        let found = symbols[..after].iter().rev().take(8);
        let (start, _, name) =
            found.into_iter().find(|symbol| address - symbol.0 < symbol.1.max(1))?;
        Some((demangled(name), address - start))
    }

    /// Returns the functions at an offset: those that were inlined there first, the innermost
    /// first, then the one that they were inlined into.
    pub(super) fn calls(&self, offset: u64) -> Vec<Call> {
        let symbol = self.at(offset, SymbolKind::Text).map(|(name, _)| name);
        let mut calls = self.inlined(offset).unwrap_or_default();
        match calls.last_mut() {
            // A symbol has the whole path of the function. Debug information may not have it.
            Some(last) => last.function = symbol.or(last.function.take()),
            None => calls.push(Call { function: symbol, line: None }),
        }
        calls
    }

    /// Returns what the debug information says of an offset.
    fn inlined(&self, offset: u64) -> Option<Vec<Call>> {
        let address = self.base.checked_add(offset).filter(|&at| at < u64::MAX / 2)?;
        let mut frames = self.lines.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut calls = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let file = frame.location.as_ref().and_then(|at| at.file);
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = name.map(|name| qualified(demangled(&name), file));
            let line = frame.location.as_ref().and_then(|at| {
                let file = Path::new(file?).file_name()?.to_string_lossy();
                Some(format!("{file}:{}", at.line?))
            });
            calls.push(Call { function, line });
        }
        Some(calls)
    }
}

/// Longer files are not read, in bytes.
const LONGEST: u64 = 4 << 30;

/// Returns the bytes of a file. The program may have named anything: a pipe that nothing writes to,
/// a device without an end, a file of holes.
fn contents(path: &Path) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut options = OpenOptions::new();
    // It may be another one by now. A pipe would have to be written to before it is open.
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file() && about.len() <= LONGEST)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(about.len()).ok()?).ok()?;
    file.take(about.len()).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the name of a function with its crate and module. Where the debug information has lines
/// only, the name has neither. The path of its file then tells them, if it is one of a package.
fn qualified(name: String, file: Option<&str>) -> String {
    let module = || {
        let (before, module) = file?.rsplit_once("/src/")?;
        let package = before.rsplit('/').next()?;
        // A folder of the registry ends with a version.
        let version = package
            .match_indices('-')
            .find(|&(at, _)| package[at + 1..].starts_with(|digit: char| digit.is_ascii_digit()));
        let crate_name = package[..version.map_or(package.len(), |(at, _)| at)].replace('-', "_");
        let parts = module.trim_end_matches(".rs").split('/');
        let parts = parts.filter(|part| !["mod", "lib", "main"].contains(part));
        Some(std::iter::once(crate_name.as_str()).chain(parts).collect::<Vec<_>>().join("::"))
    };
    let has_module =
        name.starts_with('<') || name.split('<').next().is_some_and(|path| path.contains("::"));
    match module().filter(|_| !has_module) {
        Some(module) => format!("{module}::{name}"),
        None => name,
    }
}

/// Returns the debug information of a file, if it has some.
fn lines(file: &object::File<'_>) -> Option<Lines> {
    file.section_by_name(".debug_info")?;
    let section = |id: gimli::SectionId| -> Result<Section, gimli::Error> {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok()).unwrap_or_default();
        Ok(Section::new(data.into(), gimli::LittleEndian))
    };
    Lines::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()
}

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
    fn symbols_are_found_by_address_and_demangled() {
        let symbols = Symbols {
            base: 0x1000,
            functions: vec![(0x1100, 0x20, "_ZN5queue4pushEi".into())],
            data: vec![(0x1200, 40, "queue_lock".into())],
            lines: None,
        };
        let at = |offset, kind| symbols.at(offset, kind);
        assert_eq!(at(0x100, SymbolKind::Text), Some(("queue::push".into(), 0)));
        assert_eq!(at(0x11f, SymbolKind::Text), Some(("queue::push".into(), 0x1f)));
        assert_eq!(at(0x120, SymbolKind::Text), None);
        assert_eq!(at(0xff, SymbolKind::Text), None);
        assert_eq!(at(0x208, SymbolKind::Data), Some(("queue_lock".into(), 8)));
        assert_eq!(at(u64::MAX, SymbolKind::Data), None);
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
    fn only_files_of_some_length_are_read() {
        let me = std::env::current_exe().unwrap();
        assert_eq!(contents(&me), std::fs::read(&me).ok());
        assert_eq!(contents(Path::new("/dev/zero")), None);
        let name = format!("stanchion-symbols-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a string that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
        assert_eq!(contents(&path), None);
        std::fs::remove_file(&path).unwrap();
        std::fs::File::create(&path).unwrap().set_len(LONGEST + 1).unwrap();
        assert_eq!(contents(&path), None);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_of_debug_symbols_is_found_by_the_build_id() {
        let me = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*me).unwrap();
        if let Some(path) = debug_file(&file) {
            assert!(path.starts_with("/usr/lib/debug/.build-id"), "{}", path.display());
        }
    }

    #[test]
    fn a_path_of_a_package_tells_crate_and_module() {
        let rustc = "/rustc/59807616e1fa/library/std/src/sys/sync/mutex/futex.rs";
        let registry = "registry/src/index-1/parking_lot-0.12.5/src/raw_mutex.rs";
        for (name, file, whole) in [
            ("lock", Some(rustc), "std::sys::sync::mutex::futex::lock"),
            ("lock", Some(registry), "parking_lot::raw_mutex::lock"),
            ("get", Some("code/my-server/src/main.rs"), "my_server::get"),
            ("work", Some("examples/waits.rs"), "work"),
            ("work", None, "work"),
            ("server::get", Some(rustc), "server::get"),
            ("{closure#0}<a::b>", Some(rustc), "std::sys::sync::mutex::futex::{closure#0}<a::b>"),
            ("<a::B>::get", Some(rustc), "<a::B>::get"),
        ] {
            assert_eq!(qualified(name.to_owned(), file), whole);
        }
    }

    #[inline(never)]
    fn outer() -> u64 {
        inner()
    }

    #[inline(always)]
    fn inner() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn inlined_functions_and_lines_are_known_from_debug_information() {
        assert_eq!(outer(), 7);
        let symbols = Symbols::read(&std::env::current_exe().unwrap());
        let (address, size, _) = symbols
            .functions
            .iter()
            .find(|(_, _, name)| demangled(name).ends_with("symbols::tests::outer"))
            .cloned()
            .expect("a test has symbols");
        let calls = (address..address + size).map(|at| symbols.calls(at - symbols.base));
        let named = |calls: &[Call], at: usize, end: &str| {
            calls
                .get(at)
                .and_then(|call| call.function.as_deref())
                .is_some_and(|f| f.ends_with(end))
        };
        let both = calls.into_iter().any(|calls| {
            let inner = calls.iter().position(|call| {
                call.function.as_deref().is_some_and(|name| name.ends_with("inner"))
            });
            let lines = calls.iter().flat_map(|call| &call.line);
            let here = lines.filter(|line| line.starts_with("symbols.rs:")).count();
            inner.is_some_and(|inner| named(&calls, inner + 1, "outer")) && here >= 2
        });
        assert!(both || cfg!(not(debug_assertions)), "a build without debug information");
        assert_eq!(symbols.calls(u64::MAX), [Call::default()]);
    }
}
