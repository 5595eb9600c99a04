//! Reads a path of calls into a library: which of its ways to wait a thread took, and which
//! function of the program asked for it.

/// The kind of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// For a lock.
    Lock,
    /// For a condition.
    Condition,
    /// Until another thread unparks this one, or sends it a value.
    Park,
    /// For the end of another thread.
    Join,
    /// For time to pass.
    Sleep,
    /// Of a worker of a pool without work.
    Idle,
    /// The path does not say.
    Unknown,
}

impl Class {
    /// Returns the word for it in tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Condition => "condition",
            Self::Park => "park",
            Self::Join => "join",
            Self::Sleep => "sleep",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }
}

/// A wait, by its path of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// The kind.
    pub(super) class: Class,
    /// The library's way to wait, in words.
    pub(super) entry: String,
    /// The first function outside of the libraries.
    pub(super) function: Option<String>,
    /// The number of calls up to there, which are the libraries'.
    pub(super) library: usize,
}

/// The beginnings of the names of functions by which libraries wait. Of the library's calls in a
/// path the outermost that one of them matches names the wait. But a wait for a lock is one
/// wherever the lock is taken: the program's own code may be inlined into a function of a library.
const ENTRIES: &[(&str, Class, &str)] = &[
    ("rayon_core::sleep::", Class::Idle, "rayon's idle worker"),
    ("rayon_core::latch::", Class::Park, "rayon's latch"),
    ("tokio::runtime::scheduler::multi_thread::park", Class::Idle, "tokio's idle worker"),
    ("tokio::runtime::scheduler::multi_thread::worker", Class::Idle, "tokio's idle worker"),
    ("tokio::runtime::blocking::pool", Class::Idle, "tokio's idle blocking thread"),
    ("tokio::runtime::park", Class::Park, "tokio's block_on"),
    ("crossbeam_channel::", Class::Park, "crossbeam channel"),
    ("crossbeam_utils::sync::parker", Class::Park, "crossbeam Parker"),
    ("crossbeam_utils::sync::wait_group", Class::Condition, "crossbeam WaitGroup"),
    ("std::sync::mpmc::", Class::Park, "std channel"),
    ("std::sync::mpsc::", Class::Park, "std channel"),
    ("std::sync::barrier::", Class::Condition, "std Barrier"),
    ("dashmap::lock::", Class::Lock, "dashmap RwLock"),
    ("parking_lot::raw_mutex::", Class::Lock, "parking_lot Mutex"),
    ("parking_lot::raw_rwlock::", Class::Lock, "parking_lot RwLock"),
    ("parking_lot::raw_fair_mutex::", Class::Lock, "parking_lot FairMutex"),
    ("parking_lot::condvar::", Class::Condition, "parking_lot Condvar"),
    ("parking_lot::once::", Class::Lock, "parking_lot Once"),
    ("std::sys::sync::mutex::", Class::Lock, "std Mutex"),
    ("std::sys::sync::rwlock::", Class::Lock, "std RwLock"),
    ("std::sys::sync::condvar::", Class::Condition, "std Condvar"),
    ("std::sys::sync::once::", Class::Lock, "std Once"),
    ("std::sys::sync::thread_parking::", Class::Park, "thread::park"),
    ("std::thread::functions::park", Class::Park, "thread::park"),
    ("std::thread::thread::Thread>::park", Class::Park, "thread::park"),
    ("std::thread::park", Class::Park, "thread::park"),
    ("std::thread::scoped::", Class::Join, "thread::scope"),
    ("stanchion_competitive::condvar", Class::Condition, "stanchion Condvar"),
    ("stanchion_competitive::event_count", Class::Condition, "stanchion EventCount"),
    ("stanchion_competitive::semaphore", Class::Condition, "stanchion Semaphore"),
    ("stanchion_competitive::", Class::Lock, "stanchion lock"),
    ("stanchion_threadpool::", Class::Idle, "stanchion's idle worker"),
    ("parking_lot_core::", Class::Park, "parking_lot_core"),
    ("jobserver::", Class::Idle, "jobserver's helper"),
    ("g_mutex_lock", Class::Lock, "GLib GMutex"),
    ("g_rw_lock", Class::Lock, "GLib GRWLock"),
    ("g_cond_wait", Class::Condition, "GLib GCond"),
];

/// The crates of functions that are not the program's.
const LIBRARIES: &[&str] = &[
    "std",
    "core",
    "alloc",
    "parking_lot",
    "parking_lot_core",
    "lock_api",
    "crossbeam_channel",
    "crossbeam_utils",
    "crossbeam_deque",
    "crossbeam_epoch",
    "rayon",
    "rayon_core",
    "tokio",
    "dashmap",
    "event_listener",
    "flume",
    "futures_executor",
    "hashbrown",
    "once_cell",
    "stanchion_activations",
    "stanchion_checked",
    "stanchion_order",
    "stanchion_machine",
    "stanchion_spin",
    "stanchion_competitive",
    "stanchion_threadpool",
];

/// Those of them that make locks: a lock that another library uses is that library's.
const MAKERS: &[&str] = &[
    "std",
    "core",
    "alloc",
    "parking_lot",
    "parking_lot_core",
    "lock_api",
    "stanchion_checked",
    "stanchion_order",
];

/// The name of a read-write lock of the C library.
const RW_LOCK: &str = "pthread rwlock";

/// The functions of the C library in which a thread may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// `syscall`, for the system call `futex`.
    Futex,
    /// Another one. The function alone says which kind of wait it is.
    Other(Class, &'static str),
}

impl Function {
    /// Returns the function with that letter in names of waits.
    pub(super) fn of(letter: &str) -> Option<Self> {
        Some(match letter {
            "P" => Self::Futex,
            "R" => Self::Other(Class::Lock, RW_LOCK),
            "M" => Self::Other(Class::Condition, "semaphore"),
            "B" => Self::Other(Class::Condition, "pthread barrier"),
            "N" => Self::Other(Class::Condition, "pthread condition"),
            "J" => Self::Other(Class::Join, "thread join"),
            "T" => Self::Other(Class::Sleep, "sleep"),
            _ => return None,
        })
    }
}

impl Wait {
    /// Returns what the functions of a path to `waited` say, the innermost first.
    pub(super) fn by(waited: Function, functions: &[Option<String>]) -> Self {
        let wait = Self::of(functions);
        match waited {
            Function::Futex => wait,
            Function::Other(class, entry) => Self { class, entry: entry.to_owned(), ..wait },
        }
    }

    /// Returns what the functions of a path say, the innermost first. A function is none if there
    /// is no symbol for it.
    fn of(functions: &[Option<String>]) -> Self {
        let is_library = |function: &Option<String>| function.as_deref().is_none_or(in_library);
        // A call without a symbol is the library's if one of the library follows.
        let named = |function: &Option<String>| function.as_deref().is_some_and(in_library);
        let inner = functions.iter().take_while(|function| is_library(function)).count();
        let library = functions[..inner].iter().rposition(named).map_or(0, |last| last + 1);
        let inner = library;
        let (library, program) = functions.split_at(inner);
        let mut found = library.iter().flatten().filter_map(|function| entry(function));
        let innermost = found.next();
        let found = match innermost {
            Some((_, Class::Lock, _)) => innermost,
            _ => found.next_back().or(innermost),
        };
        let begun = functions.iter().flatten().find_map(|function| begun_by(function));
        // All of a thread may be inlined into the function that begins it.
        let found = found.or_else(|| entry(begun.as_deref()?));
        let (class, entry) = match found {
            Some(&(_, class, entry)) => (class, entry.to_owned()),
            None => {
                // The outermost call of the library says the most.
                let last = library.last().cloned().flatten();
                (Class::Unknown, last.map_or("futex".to_owned(), |last| format!("futex by {last}")))
            }
        };
        let function = program.iter().flatten().find(|function| !in_library(function)).cloned();
        let function = function.or(begun.filter(|name| !in_library(name)));
        // A lock that a library takes in a thread of its own.
        let uses = |function: &&String| is_user(function);
        let user = || functions.iter().flatten().find(uses).cloned();
        let function = function.or_else(|| if class == Class::Lock { user() } else { None });
        Self { class, entry, function, library: inner }
    }
}

/// Returns whether a function is the program's own. A function without a name may be.
pub(super) fn is_own(function: Option<&str>) -> bool {
    function.is_none_or(|function| {
        !in_library(function) && !matches!(function, "_start" | "start_thread")
    })
}

/// A lock that waits by `futex`, by the name that a recording has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FutexLock {
    /// A mutex in Rust that a mutex of ours can replace.
    Mutex,
    /// A mutex of ours.
    Ours,
    /// Another kind of lock, or one in C.
    Other,
}

/// Returns which lock of the libraries a name is of, if it is of one.
pub(crate) fn futex_lock(name: &str) -> Option<FutexLock> {
    let locks = ENTRIES.iter().filter(|(_, class, _)| *class == Class::Lock);
    let mut entries = locks.map(|(.., entry)| *entry).chain([RW_LOCK]);
    let entry = entries.find(|entry| {
        let rest = name.split_once(": ").and_then(|(_, rest)| rest.strip_prefix(entry));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" in "))
    })?;
    Some(match entry {
        "std Mutex" | "parking_lot Mutex" | "parking_lot FairMutex" => FutexLock::Mutex,
        "stanchion lock" => FutexLock::Ours,
        _ => FutexLock::Other,
    })
}

/// Returns the entry that matches a function.
fn entry(function: &str) -> Option<&'static (&'static str, Class, &'static str)> {
    ENTRIES.iter().find(|(start, ..)| of_crate(function).starts_with(start))
}

/// Returns the path of a function from its crate on: `<T as Trait>::method` is of the crate of `T`.
/// If `T` is a parameter, it is of the crate of `Trait`.
fn of_crate(function: &str) -> &str {
    let mut path = function;
    loop {
        let inner = path.trim_start_matches(['<', '&', '*', '(', '[']);
        let inner = ["mut ", "const ", "dyn "]
            .iter()
            .find_map(|word| inner.strip_prefix(word))
            .unwrap_or(inner);
        if inner == path {
            break;
        }
        path = inner;
    }
    match path.split_once(" as ") {
        Some((own, of)) if !own.contains("::") => of,
        _ => path,
    }
}

/// Returns the function that a thread begins with, if `function` is the one of the standard library
/// that calls it. All of a short thread may be inlined there.
fn begun_by(function: &str) -> Option<String> {
    let types = function.strip_prefix("std::sys::backtrace::__rust_begin_short_backtrace::<")?;
    let mut depth = 0;
    let mut before = ' ';
    let end = types.find(|letter| {
        let is_arrow = std::mem::replace(&mut before, letter) == '-';
        let closes = letter == ')' || letter == '>' && !is_arrow;
        depth += i32::from(matches!(letter, '<' | '(')) - i32::from(closes);
        depth == 0 && letter == ',' || depth < 0
    })?;
    // A pointer to a function has no name.
    Some(types[..end].to_owned()).filter(|name| !name.starts_with("fn("))
}

/// Returns whether a function of a library uses locks that others make.
fn is_user(function: &str) -> bool {
    in_library(function)
        && entry(function).is_none_or(|(_, class, _)| *class != Class::Lock)
        && !function.starts_with("__rust_")
        && !MAKERS.contains(&crate_of(function))
}

/// Returns the crate of a function.
fn crate_of(function: &str) -> &str {
    of_crate(function).split("::").next().unwrap_or_default()
}

fn in_library(function: &str) -> bool {
    let name = crate_of(function);
    LIBRARIES.contains(&name) || function.starts_with("__rust_") || entry(function).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(functions: &[&str]) -> Wait {
        let name = |name: &&str| (!name.is_empty()).then(|| (*name).to_owned());
        Wait::of(&functions.iter().map(name).collect::<Vec<_>>())
    }

    #[test]
    fn the_outermost_way_to_wait_names_a_wait() {
        let wait = of(&[
            "std::sys::pal::unix::futex::futex_wait",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
            "server::Cache::get",
            "server::main",
            "std::rt::lang_start::{{closure}}",
        ]);
        assert_eq!((wait.class, wait.entry.as_str()), (Class::Lock, "std Mutex"));
        assert_eq!(wait.function.as_deref(), Some("server::Cache::get"));
        let wait = of(&[
            "std::sys::pal::unix::futex::futex_wait",
            "<std::sys::sync::thread_parking::futex::Parker>::park",
            "<std::thread::thread::Thread>::park",
            "crossbeam_channel::context::Context::wait_until",
            "crossbeam_channel::flavors::list::Channel<T>::recv",
            "server::serve",
        ]);
        assert_eq!((wait.class, wait.entry.as_str()), (Class::Park, "crossbeam channel"));
        let wait = of(&["dashmap::lock::RawRwLock::lock_exclusive_slow", "tokei::add"]);
        assert_eq!((wait.class, wait.entry.as_str()), (Class::Lock, "dashmap RwLock"));
        let wait = of(&["std::thread::functions::park", "std::thread::scoped::scope", "a::b"]);
        assert_eq!((wait.class, wait.entry.as_str()), (Class::Join, "thread::scope"));
        // The program's closure is inlined into the library's function.
        let lock = "<std::sys::sync::mutex::futex::Mutex>::lock_contended";
        let wait = of(&[lock, "std::thread::scoped::scope", "a::b"]);
        assert_eq!((wait.class, wait.function.as_deref()), (Class::Lock, Some("a::b")));
        let wait = of(&[
            "std::sys::sync::condvar::futex::Condvar::wait",
            "rayon_core::sleep::Sleep::sleep",
            "rayon_core::registry::WorkerThread::wait_until_cold",
            "std::sys::backtrace::__rust_begin_short_backtrace",
        ]);
        assert_eq!((wait.class, wait.function), (Class::Idle, None));
        // A library's lock, in a thread that the library began.
        let bridge = "<rayon::iter::par_bridge::Producer<I> as rayon::iter::plumbing::A>::fold";
        let wait = of(&[lock, bridge, "rayon_core::registry::WorkerThread::wait_until_cold"]);
        assert_eq!((wait.class, wait.function.as_deref()), (Class::Lock, Some(bridge)));
        let wait = of(&[lock, "tokio::runtime::blocking::pool::Inner::run"]);
        let pool = Some("tokio::runtime::blocking::pool::Inner::run");
        assert_eq!((wait.class, wait.function.as_deref()), (Class::Lock, pool));
    }

    #[test]
    fn a_function_behind_a_type_is_of_the_crate_of_the_type() {
        let wait = of(&[
            "parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow",
            "<lock_api::rwlock::RwLock<R, T> as core::fmt::Debug>::fmt",
            "<server::Table as server::Store>::put",
        ]);
        assert_eq!((wait.class, wait.entry.as_str()), (Class::Lock, "parking_lot RwLock"));
        assert_eq!(wait.function.as_deref(), Some("<server::Table as server::Store>::put"));
    }

    #[test]
    fn crates_are_found_behind_references_and_parameters() {
        for (function, of) in [
            (
                "<&mut server::Table as core::fmt::Write>::write",
                "server::Table as core::fmt::Write>::write",
            ),
            ("<&F as core::ops::function::Fn<A>>::call", "core::ops::function::Fn<A>>::call"),
            (
                "<dyn core::ops::function::FnOnce<(), Output = ()>>::call_once",
                "core::ops::function::FnOnce<(), Output = ()>>::call_once",
            ),
            (
                "<*const parking_lot_core::word_lock::ThreadData as A>::b",
                "parking_lot_core::word_lock::ThreadData as A>::b",
            ),
            ("main", "main"),
        ] {
            assert_eq!(of_crate(function), of);
        }
        assert!(in_library("g_mutex_lock_slowpath") && !in_library("main"));
    }

    #[test]
    fn a_recorded_name_tells_the_kind_of_lock() {
        for (name, lock) in [
            ("server: std Mutex in server::get", Some(FutexLock::Mutex)),
            ("server: parking_lot Mutex", Some(FutexLock::Mutex)),
            ("server: stanchion lock in server::get", Some(FutexLock::Ours)),
            ("server: std RwLock in server::get", Some(FutexLock::Other)),
            ("server: GLib GMutex in get", Some(FutexLock::Other)),
            ("server: pthread rwlock in get", Some(FutexLock::Other)),
            ("libx.so: queue_lock", None),
            ("std Mutex in server::get", None),
        ] {
            assert_eq!(futex_lock(name), lock, "{name}");
        }
    }

    #[test]
    fn calls_without_symbols_hide_nothing_else() {
        let wait = of(&["", "std::sys::sync::mutex::futex::Mutex::lock_contended", "", "a::b"]);
        assert_eq!(wait.class, Class::Lock);
        assert_eq!(wait.function.as_deref(), Some("a::b"));
        let thread = "std::sys::backtrace::__rust_begin_short_backtrace::<\
                      pool::run<(A, B), fn() -> u8>::{closure#1}, ()>";
        let wait = of(&[thread, "<std::sys::thread::unix::Thread>::new::thread_start"]);
        assert_eq!(wait.function.as_deref(), Some("pool::run<(A, B), fn() -> u8>::{closure#1}"));
        let helper = "std::sys::backtrace::__rust_begin_short_backtrace::<jobserver::imp::a, ()>";
        let wait = of(&[helper, "<std::sys::thread::unix::Thread>::new::thread_start"]);
        assert_eq!((wait.class, wait.function), (Class::Idle, None));
        let wait = of(&["std::new::wait", "a::b"]);
        assert_eq!((wait.class, wait.entry.as_str()), (Class::Unknown, "futex by std::new::wait"));
        let wait = of(&["", "", ""]);
        assert_eq!((wait.class, wait.function), (Class::Unknown, None));
        assert_eq!(of(&[]).class, Class::Unknown);
    }
}
