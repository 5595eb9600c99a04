//! The modules of a crate, and which module imports which.
//!
//! A file is a module, and so is a `mod name { … }` inside a file. An import is a path that begins
//! with `crate`, `super` or `self`, in a `use` or anywhere else, outside of tests. A name that is
//! re-exported (`pub use`) counts as an import of the module that it comes from. The re-export
//! itself does not count. An item with the visibility `pub(super)` or `pub(in path)` counts as an
//! import of the module that it is made for.

use std::collections::{BTreeMap, BTreeSet};

use crate::orderings::lexer::{Kind, Token};
use crate::orderings::sites::File;

/// A module's path inside its crate; empty for the root.
pub(crate) type Module = Vec<String>;

/// For each module the modules that it imports.
pub(crate) type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Names that a re-export leads through before the search gives up.
const DEEPEST: usize = 12;

/// Keywords of the items that a glob re-export may bring.
const ITEMS: [&str; 9] =
    ["struct", "enum", "trait", "fn", "type", "const", "static", "union", "macro_rules"];

/// The items and imports of one module.
#[derive(Default)]
struct Contents {
    /// Each path that begins with `crate`, `super` or `self`.
    paths: Vec<Vec<String>>,
    /// For each re-exported name the path behind it.
    names: BTreeMap<String, Vec<String>>,
    /// The paths before the `*` of re-exports.
    globs: Vec<Vec<String>>,
    /// The items that are defined here.
    items: BTreeSet<String>,
}

/// The modules of one crate.
#[derive(Default)]
pub(crate) struct Crate(BTreeMap<Module, Contents>);

impl Crate {
    /// Reads the files of a crate: each with its path from `src`, and its text.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut modules = Self::default();
        for (path, source) in files {
            if !is_test(path) {
                modules.read(module_of(path), &File::new(source).code());
            }
        }
        modules
    }

    /// Reads the tokens of the module `name`, and of the modules inside it.
    fn read(&mut self, name: Module, tokens: &[Token<'_>]) {
        let mut contents = Contents::default();
        let mut inner = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let word = tokens[at].text;
            let path_follows = is(tokens, at + 1, ':') && is(tokens, at + 2, ':');
            if word == "mod" && is_word(tokens, at + 1) && is(tokens, at + 2, '{') {
                let end = closing(tokens, at + 2);
                inner.push((tokens[at + 1].text, at + 3..end));
                at = end;
            } else if word == "pub" {
                if is(tokens, at + 1, '(') {
                    let word = if tokens[at + 2].is_word("in") { at + 3 } else { at + 2 };
                    let (leaves, end) = tree(tokens, word);
                    let leaves = leaves.into_iter().map(|(path, _)| path);
                    contents.paths.extend(leaves.filter(|path| *path != ["crate"]));
                    at = end;
                }
                at += 1;
                if at < tokens.len() && tokens[at].is_word("use") {
                    let (leaves, end) = tree(tokens, at + 1);
                    contents.reexport(leaves);
                    at = end;
                }
            } else if ["crate", "super", "self"].contains(&word) && path_follows {
                let (leaves, end) = tree(tokens, at);
                contents.paths.extend(leaves.into_iter().map(|(path, _)| path));
                at = end;
            } else {
                if ITEMS.contains(&word)
                    && let Some(item) =
                        tokens[at + 1..].iter().find(|token| token.kind == Kind::Word)
                {
                    contents.items.insert(item.text.to_owned());
                }
                at += 1;
            }
        }
        for (inside, range) in inner {
            let child = [name.as_slice(), &[inside.to_owned()]].concat();
            self.read(child, &tokens[range]);
        }
        self.0.insert(name, contents);
    }

    /// Returns which module imports which.
    pub(crate) fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (name, contents) in &self.0 {
            let found = contents.paths.iter().filter_map(|path| {
                let (base, rest) = self.absolute(name, path)?;
                self.origin(&base, &rest, 0)
            });
            imports.insert(name.clone(), found.filter(|target| target != name).collect());
        }
        imports
    }

    /// Returns the module in which `path`, as seen from the module `name`, begins, and what is left
    /// of it; `None` if it leads into another crate.
    fn absolute(&self, name: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let first = path.first()?;
        if first == "crate" {
            return Some((Module::new(), path[1..].to_vec()));
        }
        if first == "self" || first == "super" {
            let heads = path.iter().take_while(|part| *part == "self" || *part == "super");
            let (mut base, mut used) = (name.clone(), 0);
            for head in heads {
                if head == "super" {
                    base.pop();
                }
                used += 1;
            }
            return Some((base, path[used..].to_vec()));
        }
        let child = [name.as_slice(), std::slice::from_ref(first)].concat();
        let here = self.0.get(name).is_some_and(|contents| contents.names.contains_key(first));
        (here || self.0.contains_key(&child)).then(|| (name.clone(), path.to_vec()))
    }

    /// Returns the module in which the path `rest` ends that begins in `base`, through re-exports.
    fn origin(&self, base: &Module, rest: &[String], depth: usize) -> Option<Module> {
        let mut here = base.clone();
        for (at, part) in rest.iter().enumerate() {
            let child = [here.as_slice(), std::slice::from_ref(part)].concat();
            if self.0.contains_key(&child) {
                here = child;
                continue;
            }
            let Some(contents) = self.0.get(&here).filter(|_| depth < DEEPEST) else {
                return Some(here);
            };
            if let Some(behind) = contents.names.get(part) {
                let (base, mut path) = self.absolute(&here, behind)?;
                path.extend_from_slice(&rest[at + 1..]);
                return self.origin(&base, &path, depth + 1);
            }
            let behind = contents.globs.iter().find_map(|path| {
                let (base, path) = self.absolute(&here, path)?;
                let behind = self.origin(&base, &path, depth + 1)?;
                self.0.get(&behind)?.items.contains(part).then_some(behind)
            });
            return Some(behind.unwrap_or(here));
        }
        Some(here)
    }
}

impl Contents {
    fn reexport(&mut self, leaves: Vec<(Vec<String>, String)>) {
        for (mut path, name) in leaves {
            if name == "*" {
                path.pop();
                self.globs.push(path);
            } else {
                self.names.insert(name, path);
            }
        }
    }
}

/// Returns whether a file has tests only.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/") || path.starts_with("tests/")
}

/// Returns the module of a file, given by its path from `src`.
pub(crate) fn module_of(path: &str) -> Module {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Module = stem.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    if parts == ["lib"] || parts == ["main"] { Module::new() } else { parts }
}

/// Returns each path of the `use` tree at `at` with the name that it introduces (`*` for a glob),
/// and the token after the tree.
fn tree(tokens: &[Token<'_>], mut at: usize) -> (Vec<(Vec<String>, String)>, usize) {
    let mut path: Vec<String> = Vec::new();
    loop {
        if is(tokens, at, '{') {
            let close = closing(tokens, at);
            let mut leaves = Vec::new();
            at += 1;
            while at < close {
                let (inside, end) = tree(tokens, at);
                for (tail, name) in inside {
                    // `path::{self}` names the module itself.
                    let own = tail == ["self"];
                    let name = if own { path.last().cloned().unwrap_or_default() } else { name };
                    let tail = if own { Vec::new() } else { tail };
                    leaves.push(([path.as_slice(), &tail].concat(), name));
                }
                // A comma, or a token that belongs to no tree.
                at = end.max(at + 1).min(close);
                if is(tokens, at, ',') {
                    at += 1;
                }
            }
            return (leaves, close + 1);
        }
        if is(tokens, at, '*') {
            path.push("*".to_owned());
            at += 1;
            break;
        }
        if !is_word(tokens, at) {
            break;
        }
        path.push(tokens[at].text.to_owned());
        at += 1;
        if !(is(tokens, at, ':') && is(tokens, at + 1, ':')) {
            break;
        }
        at += 2;
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if at + 1 < tokens.len() && tokens[at].is_word("as") && is_word(tokens, at + 1) {
        name = tokens[at + 1].text.to_owned();
        at += 2;
    }
    let leaves = if path.is_empty() { Vec::new() } else { vec![(path, name)] };
    (leaves, at)
}

fn is(tokens: &[Token<'_>], at: usize, mark: char) -> bool {
    tokens.get(at).is_some_and(|token| token.is(mark))
}

fn is_word(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.kind == Kind::Word)
}

/// Returns the token that closes the bracket at `open`, or the number of tokens.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the circles: the sets of modules each of which imports every other, directly or by a
/// detour. The largest comes first.
pub(crate) fn circles(imports: &Imports) -> Vec<Vec<Module>> {
    // A module is in a circle with another if each reaches the other. Crates are small enough to
    // walk from every module.
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|name| (name, reach(imports, name))).collect();
    let mut circles: Vec<Vec<Module>> = Vec::new();
    for (name, others) in &reached {
        let back = |other: &&Module| reached.get(*other).is_some_and(|far| far.contains(*name));
        let circle: Vec<Module> =
            others.iter().copied().filter(back).map(|other| (*other).clone()).collect();
        // The first member in order speaks for the circle.
        if circle.len() > 1 && circle.first() == Some(*name) {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns the modules that `from` imports, directly or by a detour.
fn reach<'a>(imports: &'a Imports, from: &'a Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&Module> = vec![from];
    while let Some(name) = left.pop() {
        for other in imports.get(name).into_iter().flatten() {
            if reached.insert(other) {
                left.push(other);
            }
        }
    }
    reached
}

/// Returns which room imports which. A room is a module in the root with all that is inside it; the
/// root itself is none.
pub(crate) fn between_rooms(imports: &Imports) -> Imports {
    let mut rooms = Imports::new();
    for (name, others) in imports {
        let Some(room) = name.first() else { continue };
        let room = vec![room.clone()];
        let targets: Vec<Module> = others
            .iter()
            .filter_map(|other| other.first())
            .map(|first| vec![first.clone()])
            .collect();
        let entry = rooms.entry(room.clone()).or_default();
        entry.extend(targets.into_iter().filter(|target| *target != room));
    }
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let imports = Crate::new(files.iter().copied()).imports();
        let arrow =
            |name: &Module, other: &Module| format!("{}>{}", name.join("::"), other.join("::"));
        let arrows = imports
            .iter()
            .flat_map(|(name, others)| others.iter().map(move |other| arrow(name, other)));
        arrows.collect()
    }

    #[test]
    fn an_import_is_a_path_from_the_root_or_from_a_relative() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c; use crate::b::{self, B}; fn f() { self::c::g() }"),
            ("a/c.rs", "pub(crate) fn g() { super::f(); std::mem::drop(self.x) }"),
            (
                "a/d.rs",
                "struct D { pub(super) d: u8 } pub(in crate::b) fn f() {} pub(crate) use self::e;",
            ),
            ("b/mod.rs", "/// `crate::a`\nfn f(x: crate::a::A) { \"crate::a\" }"),
        ];
        assert_eq!(imports(&files), ["a>a::c", "a>b", "a::c>a", "a::d>a", "a::d>b", "b>a"]);
    }

    #[test]
    fn tests_and_re_exports_import_nothing() {
        let files = [
            ("lib.rs", "pub use crate::a::A; pub(crate) use self::a::B;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", ""),
            ("a/tests.rs", "use crate::b::B;"),
        ];
        assert_eq!(imports(&files), [] as [&str; 0]);
    }

    #[test]
    fn a_re_exported_name_is_imported_from_its_origin() {
        let files = [
            ("lib.rs", "pub use a::{A, c::C as D}; pub use b::*; mod a;"),
            ("a.rs", "pub use self::c::C;"),
            ("a/c.rs", ""),
            ("b.rs", "pub struct B;"),
            ("user.rs", "use crate::{A, B, D}; use crate::a::C; use crate::Unknown;"),
        ];
        assert_eq!(imports(&files), ["user>", "user>a", "user>a::c", "user>b"]);
    }

    #[test]
    fn a_module_inside_a_file_counts_as_one() {
        let files = [(
            "a.rs",
            "mod b { use super::c::C; fn f() { super::g() } } mod c { use super::b::B; } fn g() {}",
        )];
        assert_eq!(imports(&files), ["a::b>a", "a::b>a::c", "a::c>a::b"]);
    }

    #[test]
    fn the_largest_circle_comes_first_and_each_once() {
        let files = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::x::C;"),
            ("c.rs", ""),
            ("c/x.rs", "use crate::a::A; use crate::d::D;"),
            ("d.rs", "use crate::e::E;"),
            ("e.rs", "use crate::d::D;"),
        ];
        let imports = Crate::new(files).imports();
        let told: Vec<String> = circles(&imports)
            .iter()
            .map(|circle| circle.iter().map(|m| m.join("::")).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(told, ["a b c::x", "d e"]);
        let rooms = circles(&between_rooms(&imports));
        assert_eq!(rooms[0], [["a"], ["b"], ["c"]]);
        assert!(circles(&Imports::new()).is_empty());
    }
}
