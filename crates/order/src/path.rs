//! Call paths, and the first frame of the program in them.

use std::backtrace::Backtrace;
use std::fmt;
use std::sync::OnceLock;

/// Crates of locks and containers: the frame that a user looks for lies outside of them.
const INNER: [&str; 9] = [
    "std",
    "core",
    "alloc",
    "lock_api",
    "parking_lot",
    "parking_lot_core",
    "dashmap",
    "hashbrown",
    "stanchion",
];

/// The start of the names of our own crates, and of their folders in a registry.
const OWN: [&str; 2] = ["stanchion_", "stanchion-"];

/// The folders of the recorder and its wrappers where they are developed.
const OWN_FOLDERS: [&str; 2] = ["crates/order", "crates/checked"];

/// The frames of the program that are shown.
const SHOWN: usize = 8;

/// One frame of a call path.
///
/// ```
/// # use std::sync::Arc;
/// use stanchion_order::CallPath;
///
/// let path = CallPath::capture();
/// let frame = path.frames().first().expect("a thread has a frame");
/// assert!(!frame.function.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The function, or the enclosing one if the program has no debug information.
    pub function: String,
    /// The file, line and column, if the program has debug information.
    pub place: Option<String>,
}

impl Frame {
    /// Returns true if the frame is of the program, not of a crate of locks or containers.
    fn is_outside(&self) -> bool {
        let of_place = self.place.as_deref().and_then(crate_of_place);
        let of_name = Some(crate_of(&self.function)).filter(|name| !name.is_empty());
        // Neither is known of functions that are not Rust's.
        (of_place.is_some() || of_name.is_some())
            // An inlined function has no crate in its name if the program has only lines.
            && ![of_place, of_name].into_iter().flatten().any(is_inner)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} at {place}", self.function),
            None => f.write_str(&self.function),
        }
    }
}

/// The call path of an acquisition. Its names are looked up when they are asked for.
///
/// ```
/// use stanchion_order::CallPath;
///
/// fn locks_something() -> CallPath {
///     CallPath::capture()
/// }
///
/// let path = locks_something();
/// let first = path.first_outside().expect("this example is no crate of locks");
/// assert!(first.function.contains("locks_something"));
/// ```
pub struct CallPath {
    /// The addresses.
    addresses: Backtrace,
    /// The names, once they were looked up.
    frames: OnceLock<Vec<Frame>>,
}

impl CallPath {
    /// Takes the call path of the caller. Costs some microseconds; names come later. Never panics.
    ///
    /// ```
    /// use stanchion_order::CallPath;
    ///
    /// assert!(!CallPath::capture().frames().is_empty());
    /// ```
    #[must_use]
    pub fn capture() -> Self {
        Self { addresses: Backtrace::force_capture(), frames: OnceLock::new() }
    }

    /// Returns the frames, the innermost first. The first call looks up names, which takes
    /// milliseconds. Never panics.
    ///
    /// ```
    /// use stanchion_order::CallPath;
    ///
    /// let path = CallPath::capture();
    /// assert!(path.frames().iter().any(|frame| frame.function.contains("main")));
    /// ```
    pub fn frames(&self) -> &[Frame] {
        self.frames.get_or_init(|| parse(&self.addresses.to_string()))
    }

    /// Returns the first frame outside of the crates of locks and containers. Costs as
    /// [`frames`](Self::frames) does. Never panics.
    ///
    /// ```
    /// use stanchion_order::CallPath;
    ///
    /// let path = CallPath::capture();
    /// assert!(path.first_outside().is_some());
    /// ```
    pub fn first_outside(&self) -> Option<&Frame> {
        self.outside().next()
    }

    /// Returns the frames outside of these crates, the innermost first.
    pub(crate) fn outside(&self) -> impl Iterator<Item = &Frame> {
        self.frames().iter().filter(|frame| frame.is_outside())
    }
}

impl fmt::Debug for CallPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.frames()).finish()
    }
}

/// Shows the program's frames, one a line.
impl fmt::Display for CallPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut outside = self.outside();
        for frame in outside.by_ref().take(SHOWN) {
            writeln!(f, "        {frame}")?;
        }
        match outside.count() {
            0 => Ok(()),
            more => writeln!(f, "        and {more} more"),
        }
    }
}

/// Reads the text of a backtrace: a line with a number and a function for each frame, and below it
/// a line with its place.
fn parse(text: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(place) = line.strip_prefix("at ") {
            if let Some(frame) = frames.last_mut() {
                frame.place = Some(place.to_owned());
            }
        } else if let Some((number, function)) = line.split_once(": ")
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            frames.push(Frame { function: function.to_owned(), place: None });
        }
    }
    frames
}

/// Returns the crate of a function by its name: that of the type in `<TYPE as TRAIT>::function`, or
/// that of the trait if the type is a parameter. Empty if there is none.
fn crate_of(function: &str) -> &str {
    let types = function.trim_start_matches(['<', '&', '*', '(', '[']);
    let types = ["mut ", "const ", "dyn ", "impl "]
        .iter()
        .fold(types, |types, word| types.strip_prefix(word).unwrap_or(types));
    let end = types.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let (name, rest) = types.split_at(end.unwrap_or(types.len()));
    if rest.starts_with("::") || rest.starts_with('[') {
        return name;
    }
    match rest.split_once(" as ").or_else(|| rest.split_once(" for ")) {
        _ if !function.starts_with('<') => "",
        Some((_, of)) => crate_of(of),
        None => "core",
    }
}

/// Returns the crate of a Rust file: the folder that has `src`, without its version.
fn crate_of_place(place: &str) -> Option<&str> {
    if place.contains("/rustc/") || place.contains("/rustlib/") {
        return Some("std");
    }
    let (file, _) = place.split_once(".rs:")?;
    let Some((folder, _)) = file.rsplit_once("/src/") else { return Some("") };
    if OWN_FOLDERS.iter().any(|own| folder.ends_with(own)) {
        return Some("stanchion");
    }
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let mut versions = name.match_indices('-').map(|(at, _)| name.split_at(at));
    let is_version = |text: &str| text[1..].starts_with(|letter: char| letter.is_ascii_digit());
    Some(versions.find(|(_, text)| is_version(text)).map_or(name, |(name, _)| name))
}

/// Returns true for a crate of locks or containers, and for our own.
fn is_inner(name: &str) -> bool {
    INNER.contains(&name) || name.starts_with(OWN[0]) || name.starts_with(OWN[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_of_a_function_is_that_of_its_type_or_trait() {
        for (function, of) in [
            ("mine::work", "mine"),
            ("dashmap::DashMap<K,V,S>::insert", "dashmap"),
            ("<dashmap::DashMap<u32, u32> as dashmap::t::Map<u32, u32>>::_insert", "dashmap"),
            ("<dashmap[1f2e]::DashMap<u32, u32>>::insert", "dashmap"),
            ("<T as core::convert::Into<U>>::into", "core"),
            ("<&mut mine::Server as core::fmt::Debug>::fmt", "mine"),
            ("<F as mine::Handler>::handle::{{closure}}", "mine"),
            ("call_once<<mine::A as core::ops::Fn>::Output>", ""),
            ("_start", ""),
        ] {
            assert_eq!(crate_of(function), of, "{function}");
        }
    }

    #[test]
    fn the_crate_of_a_place_is_the_folder_above_src() {
        for (place, of) in [
            ("/home/me/.cargo/registry/src/index-1/dashmap-6.2.1/src/lib.rs:928:38", "dashmap"),
            ("/home/me/pre-release/dashmap-7.0.0-rc2/src/t.rs:1:2", "dashmap"),
            ("/home/me/stanchion/patches/lock_api-0.4/src/mutex.rs:1:2", "lock_api"),
            ("/home/me/stanchion/crates/order/src/identity.rs:1:2", "stanchion"),
            ("/rustc/0123/library/core/src/option.rs:1165:29", "std"),
            ("/home/me/my-program/src/main.rs:3:4", "my-program"),
            ("./src/main.rs:3:4", "."),
            ("./examples/dump.rs:7:43", ""),
        ] {
            assert_eq!(crate_of_place(place), Some(of), "{place}");
        }
        assert_eq!(crate_of_place("./nptl/pthread_create.c:442:8"), None);
    }

    #[test]
    fn an_inlined_function_without_a_crate_is_placed_by_its_file() {
        let is_outside = |function: &str, place: Option<&str>| {
            let place = place.map(str::to_owned);
            Frame { function: function.to_owned(), place }.is_outside()
        };
        assert!(is_outside("transfer", Some("./src/main.rs:24:5")));
        assert!(!is_outside("lock_shared", Some("/a/lock_api-0.4.14/src/rwlock.rs:24:5")));
        assert!(!is_outside("main", None));
        assert!(is_outside("mine::transfer", None));
        assert!(!is_outside("start_thread", Some("./nptl/pthread_create.c:442:8")));
    }

    #[test]
    fn the_text_of_a_backtrace_is_read_frame_by_frame() {
        let text = "   0: stanchion_order::path::CallPath::capture\n             at ./src/a.rs:1:2\n\
            \x20  1: <dashmap::DashMap<K,V,S> as dashmap::t::Map<K,V,S>>::_insert\n\
            \x20  2: mine::fill\n             at /home/me/mine/src/main.rs:10:5\n\
            \x20  3: core::ops::function::FnOnce::call_once\n\
            \x20 10: __libc_start_main\n";
        let frames = parse(text);
        assert_eq!(frames.len(), 5);
        let first = frames.iter().find(|frame| frame.is_outside()).expect("`fill` is outside");
        assert_eq!(first.to_string(), "mine::fill at /home/me/mine/src/main.rs:10:5");
    }

    #[test]
    fn a_method_of_std_with_a_place_of_std_is_inside() {
        let place = Some("/rustc/0123/library/std/src/thread/mod.rs:1:2".to_owned());
        let frame = Frame { function: "__rust_begin_short_backtrace::run".to_owned(), place };
        assert!(!frame.is_outside());
    }
}
