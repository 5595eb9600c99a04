//! Which file a command is, and whether the loader will put the shim before its locks.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use super::Refusal;

/// The file that a shell would run.
pub(super) fn find(command: &OsStr) -> Result<PathBuf, Refusal> {
    if command.as_bytes().contains(&b'/') {
        return executable(PathBuf::from(command))
            .ok_or_else(|| Refusal::NotFound(command.to_owned()))?;
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let mut refused = None;
    for place in std::env::split_paths(&path) {
        match executable(place.join(command)) {
            Some(Ok(found)) => return Ok(found),
            Some(Err(why)) => refused = refused.or(Some(why)),
            None => {}
        }
    }
    Err(refused.unwrap_or_else(|| Refusal::NotFound(command.to_owned())))
}

/// None if there is no such file.
fn executable(path: PathBuf) -> Option<Result<PathBuf, Refusal>> {
    let about = fs::metadata(&path).ok()?;
    let reason = if about.is_dir() {
        "it is a directory"
    } else if about.mode() & 0o111 == 0 {
        "it is not executable (chmod +x)"
    } else {
        return Some(Ok(path));
    };
    Some(Err(Refusal::NotExecutable { path, reason: reason.into() }))
}

/// The bytes at the beginning of a file that are examined.
const HEAD: u64 = 64 * 1024;

/// Checks that the shim can be loaded into the program.
pub(super) fn check(path: &Path) -> Result<(), Refusal> {
    check_nested(path, 0)
}

fn check_nested(path: &Path, depth: u32) -> Result<(), Refusal> {
    let unsuitable =
        |reason: &str| Refusal::Unsuitable { path: path.to_owned(), reason: reason.to_owned() };
    let unreadable = |error: std::io::Error| Refusal::NotExecutable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let about = fs::metadata(path).map_err(unreadable)?;
    // SAFETY: asks a number of the kernel.
    let user = unsafe { libc::geteuid() };
    // SAFETY: as above.
    let group = unsafe { libc::getegid() };
    let sets_user = about.mode() & libc::S_ISUID != 0 && about.uid() != user;
    let sets_group = about.mode() & libc::S_ISGID != 0 && about.gid() != group;
    if sets_user || sets_group {
        return Err(unsuitable(
            "it changes its user or group as it starts (set-uid or set-gid), and the loader then ignores LD_PRELOAD; \
             run it as that user",
        ));
    }
    let mut head = Vec::new();
    let mut file = match File::open(path) {
        Ok(file) => file.take(HEAD),
        // The user may be allowed to run it although it cannot be read.
        Err(_) => return Ok(()),
    };
    file.read_to_end(&mut head).map_err(unreadable)?;
    if let Some(script) = head.strip_prefix(b"#!") {
        // As deep as the kernel goes.
        return match interpreter(script) {
            Some(interpreter) if depth < 4 => check_nested(&interpreter, depth + 1),
            _ => Ok(()),
        };
    }
    match linking(&head) {
        Linking::Dynamic | Linking::Unknown => Ok(()),
        Linking::Static => Err(unsuitable(
            "it is statically linked, so there is no loader that could put anything before its locks; link it dynamically",
        )),
        Linking::OtherLibrary(loader) => Err(unsuitable(&format!(
            "it uses the C library of {loader}, and the shim is for the GNU C library"
        ))),
        Linking::OtherMachine => Err(unsuitable(
            "it is for another kind of processor than the shim (a 32-bit program on 64 bits?)",
        )),
    }
}

fn interpreter(script: &[u8]) -> Option<PathBuf> {
    let line = script.split(|&byte| byte == b'\n').next()?;
    let word = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    (!word.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(word)))
}

#[derive(Debug, PartialEq, Eq)]
enum Linking {
    Dynamic,
    Static,
    OtherLibrary(String),
    OtherMachine,
    /// Not an ELF file, or its head says nothing.
    Unknown,
}

fn linking(head: &[u8]) -> Linking {
    if !head.starts_with(b"\x7fELF") {
        return Linking::Unknown;
    }
    let machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    let Ok(header) = FileHeader64::<Endianness>::parse(head) else { return Linking::OtherMachine };
    let Ok(endian) = header.endian() else { return Linking::Unknown };
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if known && header.e_machine(endian) != machine {
        return Linking::OtherMachine;
    }
    let Ok(parts) = header.program_headers(endian, head) else { return Linking::Unknown };
    match parts.iter().find(|part| part.p_type(endian) == elf::PT_INTERP) {
        None => Linking::Static,
        Some(part) => {
            let loader = part.data(endian, head).unwrap_or_default();
            let loader = String::from_utf8_lossy(loader).trim_end_matches('\0').to_owned();
            if loader.contains("musl") { Linking::OtherLibrary(loader) } else { Linking::Dynamic }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_dynamic() {
        let me = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(linking(&me), Linking::Dynamic);
        let mut other = me.clone();
        other[18] ^= 0xFF;
        assert_eq!(linking(&other), Linking::OtherMachine);
        other[4] = 1;
        assert_eq!(linking(&other), Linking::OtherMachine);
        assert_eq!(linking(b"#!/bin/sh"), Linking::Unknown);
        assert_eq!(linking(&me[..64]), Linking::Unknown);
    }

    #[test]
    fn the_interpreter_of_a_script() {
        let of = |script: &[u8]| interpreter(script);
        assert_eq!(of(b" /usr/bin/env python3\nprint()"), Some("/usr/bin/env".into()));
        assert_eq!(of(b"/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(of(b"\n"), None);
    }

    #[test]
    fn commands_are_found_as_a_shell_would() {
        assert!(find(OsStr::new("sh")).unwrap().is_absolute());
        assert!(matches!(find(OsStr::new("no such command")), Err(Refusal::NotFound(_))));
        assert!(matches!(find(OsStr::new("/")), Err(Refusal::NotExecutable { .. })));
        assert!(matches!(find(OsStr::new("/etc/passwd")), Err(Refusal::NotExecutable { .. })));
    }
}
