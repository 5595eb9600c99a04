//! Counts the instructions that the code of an operation executes between its accesses.
//!
//! The processor is told to trap after each instruction (the trap flag of x86-64), and the handler
//! of the signal counts. So the count is exact, and the same on each computer that runs the same
//! binary. Instructions of the C library are not counted, because it chooses its functions by the
//! processor. Nor are those of calls of the simulator and of its backend in `machine`, which stand
//! for hardware and kernel. All others are. The simulator's allocator stands for any other one, and
//! is counted.
//!
//! An access is known by the call of the backend's function that looks the place up in the table of
//! instructions. The call of an atomic's method stands in the place of one instruction; those that
//! pass its arguments are counted.

use core::panic::Location;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::OnceLock;

use object::{Object, ObjectSymbol};
use study_programs::ms97::rows::{self, Row};

use crate::measure;
use crate::operation::{Operation, Round};

/// The accesses of one file, and the instructions before them.
#[derive(Clone, Copy, Default)]
struct Sum {
    /// The number of accesses.
    accesses: u64,
    /// The instructions before them.
    instructions: u64,
}

/// The most accesses of one count.
const ACCESSES: usize = 1 << 16;

/// The instructions since the last access. Relaxed here and below: one thread counts, and the
/// handler runs on it.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The accesses so far: the address of the place, and the instructions before it.
static SEEN: [(AtomicUsize, AtomicU64); ACCESSES] =
    [const { (AtomicUsize::new(0), AtomicU64::new(0)) }; ACCESSES];
/// Where the call of the simulator returns to; 0 if there is none. After a switch to another
/// virtual thread that is known by its first function that is this project's.
static RETURNS_TO: AtomicUsize = AtomicUsize::new(0);
/// The number of accesses so far.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The functions of this program.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// A function, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Function {
    /// Of this file.
    Counter,
    /// Of the simulator.
    Simulator,
    /// Of a crate of this project that runs on it.
    Algorithm,
    /// Of another crate, called by either.
    Other,
}

/// The functions of this program, for the handler.
struct Functions {
    /// The address at which each function begins, in order, and what it is.
    all: Vec<(usize, Function)>,
    /// The address behind the last function.
    end: usize,
    /// The address of the function that each access calls.
    access: usize,
}

/// The start of this program in memory, beyond the addresses of its file.
fn load_address() -> usize {
    unsafe extern "C" {
        static __ehdr_start: u8;
    }
    (&raw const __ehdr_start).addr()
}

/// Reads the names of this program's functions.
fn functions() -> Result<Functions, String> {
    let path = std::env::current_exe().map_err(|error| format!("this program's file: {error}"))?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file =
        object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let start = load_address();
    let mut all = Vec::new();
    let (mut access, mut end) = (None, 0);
    for symbol in file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text) {
        let (Ok(name), address) = (symbol.name(), start + symbol.address() as usize) else {
            continue;
        };
        let is_of = |prefix: &str| name.starts_with(prefix);
        let simulator =
            is_of("_ZN19stanchion_simulator") && !is_of("_ZN19stanchion_simulator5arena");
        let backend = is_of("_ZN27stanchion_machine_simulated7backend");
        let own = is_of("_ZN5costs12instructions");
        if name.contains("7backend12instructions6before") {
            access = Some(address);
        }
        let function = if own {
            Function::Counter
        } else if simulator || backend {
            Function::Simulator
        } else if name.contains("stanchion_") {
            Function::Algorithm
        } else {
            Function::Other
        };
        end = end.max(address + symbol.size() as usize);
        all.push((address, function));
    }
    all.sort_unstable();
    let access = access.ok_or("this program has no symbols: do not strip it")?;
    Ok(Functions { all, end, access })
}

extern "C" fn step(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(functions) = FUNCTIONS.get() else { return };
    // SAFETY: the kernel passes a context to a handler that asks for it.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    // Where the processor goes on.
    let next = registers[libc::REG_RIP as usize] as usize;
    if next == functions.access {
        let place = registers[libc::REG_RDI as usize] as usize;
        let (of, steps) = &SEEN[COUNT.fetch_add(1, Ordering::Relaxed) % ACCESSES];
        of.store(place, Ordering::Relaxed);
        steps.store(STEPS.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        return;
    }
    let own =
        functions.all.first().is_some_and(|(first, _)| (*first..functions.end).contains(&next));
    if !own {
        return;
    }
    let after = functions.all.partition_point(|(address, _)| *address <= next);
    let function = after.checked_sub(1).map_or(Function::Other, |index| functions.all[index].1);
    let returns_to = RETURNS_TO.load(Ordering::Relaxed);
    match function {
        Function::Simulator if returns_to == 0 => {
            // SAFETY: at a function's first instruction its return address is on top of the stack.
            let top = unsafe { *(registers[libc::REG_RSP as usize] as *const usize) };
            RETURNS_TO.store(top, Ordering::Relaxed);
        }
        Function::Simulator | Function::Counter => {}
        Function::Other if returns_to != 0 && returns_to != next => {}
        Function::Other | Function::Algorithm => {
            RETURNS_TO.store(0, Ordering::Relaxed);
            STEPS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sets the trap flag.
#[inline(always)]
fn begin() {
    // SAFETY: it changes the trap flag alone, for which there is a handler. The stack below the
    // pointer, where a function without calls may keep its variables, is skipped.
    unsafe {
        core::arch::asm!(
            "lea rsp, [rsp - 128]",
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "lea rsp, [rsp + 128]"
        );
    }
}

/// Clears the trap flag.
#[inline(always)]
fn end() {
    // SAFETY: as in `begin`.
    unsafe {
        core::arch::asm!(
            "lea rsp, [rsp - 128]",
            "pushfq",
            "and qword ptr [rsp], ~0x100",
            "popfq",
            "lea rsp, [rsp + 128]"
        );
    }
}

/// Installs the handler.
fn install() -> Result<(), String> {
    let functions = functions()?;
    FUNCTIONS.get_or_init(|| functions);
    // SAFETY: an action that is zero is the default one, with an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    let handler: extern "C" fn(_, _, _) = step;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
    // SAFETY: the handler adds to counters and reads what was there before it.
    let failed =
        unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, core::ptr::null_mut()) };
    if failed == 0 { Ok(()) } else { Err("the system takes no handler of SIGTRAP".to_owned()) }
}

/// Calls `round` with each of its instructions counted.
fn counted(round: &Round) {
    STEPS.store(0, Ordering::Relaxed);
    begin();
    round();
    end();
    RETURNS_TO.store(0, Ordering::Relaxed);
}

/// Takes out what was counted, by file.
fn take(sums: &mut BTreeMap<&'static str, Sum>) {
    let count = COUNT.swap(0, Ordering::Relaxed);
    assert!(count <= ACCESSES, "more accesses than there is room for");
    for (place, steps) in &SEEN[..count] {
        // SAFETY: the handler took the address from a reference to a place.
        let place = unsafe { &*(place.load(Ordering::Relaxed) as *const Location<'static>) };
        let sum = sums.entry(place.file()).or_default();
        sum.accesses += 1;
        sum.instructions += steps.load(Ordering::Relaxed);
    }
}

/// Makes the rounds of a structure of Michael and Scott's figures.
fn rounds(row: &'static Row) -> Vec<Round> {
    let subject = (row.make)(0);
    vec![Box::new(move || subject.turn(1, &mut || ()))]
}

/// Counts the operations, and the structures of Michael and Scott's figures, which are programs of
/// the study. Prints a line for each source file: its name, its accesses, and the instructions
/// before them.
pub(crate) fn print(operations: Vec<Operation>) -> Result<(), String> {
    install()?;
    let mut sums = BTreeMap::new();
    let rows = [rows::QUEUES, rows::STACKS, rows::HEAPS, rows::COUNTERS].into_iter().flatten();
    for Operation { set_up, .. } in operations {
        measure::count(move || set_up(1), counted);
        take(&mut sums);
    }
    for row in rows {
        measure::count(move || rounds(row), counted);
        take(&mut sums);
    }
    for (file, Sum { accesses, instructions }) in sums {
        println!("{file} {accesses} {instructions}");
    }
    Ok(())
}
