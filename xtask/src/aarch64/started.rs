//! Lets a program that qemu emulates start programs of its own architecture.
//!
//! `qemu-aarch64` emulates one program. When that program executes another one, qemu passes the
//! call on to the kernel, and the kernel of another architecture refuses the file. (`binfmt_misc`
//! would help, but only root can set it up, and for the whole machine.) Tests that start themselves
//! again would fail.
//!
//! `cargo xtask aarch64` compiles this file to a library of the emulated architecture and has it
//! loaded into each emulated program. It stands before libc's functions that execute a file. If the
//! file is built for AArch64, then the emulator is executed instead, with the file as its argument.
//!
//! `STANCHION_EMULATOR` (when this is compiled) is the path of a script: it runs its arguments
//! under the emulator, with this library loaded.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const EMULATOR: &str = env!("STANCHION_EMULATOR");

/// The fields of an ELF header that say "AArch64": the magic number, and `e_machine` with its
/// offset.
const MAGIC: &[u8] = b"\x7fELF";
const MACHINE: (usize, [u8; 2]) = (18, 183_u16.to_le_bytes());

/// Arguments or an environment as libc takes them: pointers, of which the last one is null.
type Strings = *const *const c_char;
type Exec = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type Spawn = unsafe extern "C" fn(
    *mut c_int,
    *const c_char,
    *const c_void,
    *const c_void,
    Strings,
    Strings,
) -> c_int;

const NEXT: *mut c_void = -1_isize as *mut c_void;

unsafe extern "C" {
    static environ: Strings;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Executes `path` in place of this process.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, args: Strings, vars: Strings) -> c_int {
    // SAFETY: the caller passes what libc's function takes.
    let call = unsafe { Call::new(path, args, vars) };
    // SAFETY: libc has a function of that name and type.
    let real: Exec = unsafe { std::mem::transmute(next(c"execve")) };
    // SAFETY: the strings of `call` live until it returns.
    unsafe {
        real(call.path.as_ptr(), pointers(&call.args).as_ptr(), pointers(&call.vars).as_ptr())
    }
}

/// Executes `file`, which is looked for along `PATH`, with another environment.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, args: Strings, vars: Strings) -> c_int {
    // SAFETY: the caller passes a string.
    let path = found(unsafe { CStr::from_ptr(file) });
    // SAFETY: as the caller's, with a path in place of the name.
    unsafe { execve(path.as_ptr(), args, vars) }
}

/// Executes `file`, which is looked for along `PATH`.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, args: Strings) -> c_int {
    // SAFETY: libc's variable; a thread that changes it meanwhile is the caller's fault.
    let vars = unsafe { environ };
    // SAFETY: as the caller's.
    unsafe { execvpe(file, args, vars) }
}

/// Executes `path`.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, args: Strings) -> c_int {
    // SAFETY: libc's variable; a thread that changes it meanwhile is the caller's fault.
    let vars = unsafe { environ };
    // SAFETY: as the caller's.
    unsafe { execve(path, args, vars) }
}

/// Starts `path` as a process.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    process: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: Strings,
    vars: Strings,
) -> c_int {
    // SAFETY: the caller passes what libc's function takes.
    let call = unsafe { Call::new(path, args, vars) };
    // SAFETY: libc has a function of that name and type.
    let real: Spawn = unsafe { std::mem::transmute(next(c"posix_spawn")) };
    let (args, vars) = (pointers(&call.args), pointers(&call.vars));
    // SAFETY: the strings of `call` live until it returns; the rest is the caller's.
    unsafe { real(process, call.path.as_ptr(), actions, attributes, args.as_ptr(), vars.as_ptr()) }
}

/// Starts `file`, which is looked for along `PATH`, as a process.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    process: *mut c_int,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: Strings,
    vars: Strings,
) -> c_int {
    // SAFETY: the caller passes a string.
    let path = found(unsafe { CStr::from_ptr(file) });
    // SAFETY: as the caller's, with a path in place of the name.
    unsafe { posix_spawn(process, path.as_ptr(), actions, attributes, args, vars) }
}

/// The program that is executed in the end.
struct Call {
    /// The file.
    path: CString,
    /// The arguments, with the name of the program.
    args: Vec<CString>,
    /// The environment.
    vars: Vec<CString>,
}

impl Call {
    /// # Safety
    ///
    /// A string, and two lists of strings that end with null.
    unsafe fn new(path: *const c_char, args: Strings, vars: Strings) -> Self {
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(path) }.to_owned();
        // SAFETY: the caller's promise.
        let mut args = unsafe { strings(args) };
        // SAFETY: the caller's promise.
        let mut vars = unsafe { strings(vars) };
        // The emulator's script sets it for emulated programs. In others it would only give a
        // warning.
        vars.retain(|var| !var.to_bytes().starts_with(b"LD_PRELOAD="));
        if !is_emulated(&path) {
            return Self { path, args, vars };
        }
        let emulator = CString::new(EMULATOR).expect("a path");
        let name = args.first().unwrap_or(&path).clone();
        let mut all = vec![emulator.clone(), c"-0".to_owned(), name, path];
        all.extend(args.drain(1.min(args.len())..));
        Self { path: emulator, args: all, vars }
    }
}

/// Returns whether the file is a program for AArch64.
fn is_emulated(path: &CStr) -> bool {
    let mut header = [0; MACHINE.0 + MACHINE.1.len()];
    let read = std::fs::File::open(OsStr::from_bytes(path.to_bytes()))
        .and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.starts_with(MAGIC) && header.ends_with(&MACHINE.1)
}

/// The path of `file`: along `PATH` if it is a plain name, and as it is if it is found nowhere.
fn found(file: &CStr) -> CString {
    let name = Path::new(OsStr::from_bytes(file.to_bytes()));
    if !file.to_bytes().contains(&b'/') {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::env::split_paths(&folders).map(|folder: PathBuf| folder.join(name));
        if let Some(path) = paths.into_iter().find(|path| path.is_file()) {
            return CString::new(path.as_os_str().as_bytes()).expect("a path");
        }
    }
    file.to_owned()
}

/// libc's own function of that name.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a question.
    let function = unsafe { dlsym(NEXT, name.as_ptr()) };
    assert!(!function.is_null(), "libc has no {name:?}");
    function
}

/// # Safety
///
/// A list of strings that ends with null, or null.
unsafe fn strings(list: Strings) -> Vec<CString> {
    let mut all = Vec::new();
    if list.is_null() {
        return all;
    }
    loop {
        // SAFETY: before the end, or at it.
        let place = unsafe { list.add(all.len()) };
        // SAFETY: likewise.
        let string = unsafe { *place };
        if string.is_null() {
            return all;
        }
        // SAFETY: before the end stand strings.
        all.push(unsafe { CStr::from_ptr(string) }.to_owned());
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}
