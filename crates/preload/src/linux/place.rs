//! The names of locks. A lock that is a static of the program or a library is named after its
//! address. Any other pthread mutex is named after the call that first waited for it. A wait in a
//! call of `futex` is named after the path of calls that led to it.
//!
//! A name here is a kind, a path and offsets. `stanchion record` looks the symbols up after the
//! program has ended.
//!
//! ```text
//! S/usr/lib/libx.so.1+0x5c10           a static of the library
//! C/usr/bin/program+0x1f2b4            called from there
//! P/usr/bin/program+0x1f2b4+0x2c00     called from there, in a function that was called from there
//! ```
//!
//! A path has another letter if the wait was in another function than `futex`: `R` for a read-write
//! lock, `M` for a semaphore, `B` for a barrier, `N` for a condition, `J` for the end of a thread,
//! `T` for time.
//!
//! An offset counts from the address at which the file's beginning is mapped. A static that is zero
//! at first is behind the file's mappings, in memory without a name. The file's own header, which
//! is mapped too, says whether that memory belongs to the file.

use core::ops::Range;

use stanchion_competitive::waits::shared::MAX_NAME;

use super::Site;
use super::{maps, module};

/// The kind of a path that led to `futex`.
pub(super) const FUTEX: u8 = b'P';
/// The kind of a path that led to a wait for a condition.
pub(super) const CONDITION: u8 = b'N';

/// A name under construction.
pub(super) struct Name {
    /// The bytes of the name. The first `length` of them are in use.
    text: [u8; MAX_NAME],
    /// The number of bytes in use.
    length: usize,
    /// True if a part did not fit.
    cut: bool,
}

impl Name {
    const fn new() -> Self {
        Self { text: [0; MAX_NAME], length: 0, cut: false }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }

    /// Appends `bytes`, or as much of them as fits.
    fn push(&mut self, bytes: &[u8]) {
        let room = self.text.len() - self.length;
        self.cut |= bytes.len() > room;
        let bytes = &bytes[..bytes.len().min(room)];
        self.text[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Appends a number, such as `0x5c10`.
    fn push_hexadecimal(&mut self, number: usize) {
        self.push(b"0x");
        let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.push(&[b"0123456789abcdef"[number >> (digit * 4) & 0xF]]);
        }
    }

    /// Starts a name of this kind with this path.
    fn start(&mut self, kind: u8, path: &[u8]) {
        *self = Self::new();
        self.push(&[kind]);
        self.push(end(path));
    }

    /// Returns whether the name was started with that path.
    fn is_of(&self, path: &[u8]) -> bool {
        self.length > 1 && self.as_bytes()[1..] == *end(path)
    }

    /// Returns the number of bytes that fit.
    fn room(&self) -> usize {
        self.text.len() - self.length
    }

    /// Appends the offset.
    fn finish(&mut self, offset: usize) {
        self.push(b"+");
        self.push_hexadecimal(offset);
    }
}

/// The most bytes of an offset and its sign.
const LONGEST_OFFSET: usize = 20;

/// Returns as much of a path as leaves room for the offset. A longer path is cut at its front.
fn end(path: &[u8]) -> &[u8] {
    &path[path.len().saturating_sub(MAX_NAME - 1 - LONGEST_OFFSET)..]
}

/// Returns the name of the static at `address`. If there is no such static, returns the memory
/// around the address in which there is none.
pub(super) fn of_static(address: usize) -> Result<Name, Range<usize>> {
    let mut around = 0..0;
    name(b'S', address, &mut around).map(|(name, _)| name).ok_or(around)
}

/// Returns the name of the call that returns to `site`.
pub(super) fn of_site(site: Site) -> Option<Name> {
    // An address within the call itself: the return address may be in another function.
    name(b'C', site.checked_sub(1)?, &mut (0..0)).map(|(name, _)| name)
}

/// Returns the name of the calls that return to these addresses, the innermost first, for a wait of
/// that kind. It ends with the first call of another file, or where there is no more room.
pub(super) fn of_path(kind: u8, addresses: &[usize]) -> Option<Name> {
    path(kind, addresses, name)
}

/// Does the work of `of_path`, with the function that finds the name of the first call.
fn path(
    kind: u8,
    addresses: &[usize],
    find: impl Fn(u8, usize, &mut Range<usize>) -> Option<(Name, usize)>,
) -> Option<Name> {
    let (first, others) = addresses.split_first()?;
    let mut around = 0..0;
    let (mut name, base) = find(kind, first.checked_sub(1)?, &mut around)?;
    for address in others.iter().filter_map(|address| address.checked_sub(1)) {
        if !around.contains(&address) || name.room() < LONGEST_OFFSET {
            break;
        }
        name.finish(address.wrapping_sub(base));
    }
    Some(name)
}

/// Returns the name of the static at `address`, without a system call.
pub(super) fn static_of_module(address: usize) -> Option<Name> {
    name_by_module(b'S', address, &mut (0..0)).map(|(name, _)| name)
}

/// Returns the name of the calls that return to these addresses, the innermost first, without a
/// system call.
pub(super) fn path_of_module(addresses: &[usize]) -> Option<Name> {
    path(FUTEX, addresses, name_by_module)
}

/// Finds the name of `address` and the address at which its file begins. Stores the mapping that
/// contains it in `around`.
fn name(kind: u8, address: usize, around: &mut Range<usize>) -> Option<(Name, usize)> {
    let mut name = Name::new();
    let mut module = Module { base: 0, end: 0, header: false };
    let mut found = false;
    let has_read = maps::visit(|mapping| {
        if mapping.start > address {
            return true;
        }
        let here = address < mapping.end;
        if here {
            *around = mapping.start..mapping.end;
        }
        if mapping.path.first() == Some(&b'/') {
            if !name.is_of(mapping.path) {
                module = Module {
                    base: mapping.start.wrapping_sub(mapping.offset),
                    end: mapping.end,
                    header: mapping.offset == 0 && mapping.readable,
                };
                name.start(kind, mapping.path);
            }
            module.end = mapping.end;
            found = here && module.is_program();
        } else if here {
            let offset = address.wrapping_sub(module.base);
            found = mapping.path.is_empty()
                && mapping.start == module.end
                && module.size().is_some_and(|size| offset < size);
        }
        here
    });
    if !has_read {
        return name_by_module(kind, address, around);
    }
    name.finish(address.wrapping_sub(module.base));
    (found && !name.cut).then_some((name, module.base))
}

/// Does the work of `name` without a system call. The C library has the path of a file as it was
/// looked for, which may be another one than that of its mappings.
fn name_by_module(kind: u8, address: usize, around: &mut Range<usize>) -> Option<(Name, usize)> {
    let module = module::of(address)?;
    *around = module.range.clone();
    let mut name = Name::new();
    module.with_path(|path| name.start(kind, path))?;
    name.finish(address.wrapping_sub(module.range.start));
    (!name.cut).then_some((name, module.range.start))
}

/// A file and the memory in which it is mapped.
struct Module {
    /// The address at which the file's beginning is mapped, or would be.
    base: usize,
    /// The end of the last mapping of the file so far.
    end: usize,
    /// True if the beginning of the file is mapped and can be read.
    header: bool,
}

impl Module {
    /// Returns the file's header, if the file is a program or a library.
    fn head(&self) -> Option<&libc::Elf64_Ehdr> {
        if !self.header {
            return None;
        }
        let head = self.base as *const libc::Elf64_Ehdr;
        // SAFETY: the kernel says that the page there can be read. It holds the header of the file
        // that contains the lock or the caller. That file stays mapped.
        let head = unsafe { &*head };
        (head.e_ident[..4] == *b"\x7fELF").then_some(head)
    }

    fn is_program(&self) -> bool {
        self.head().is_some()
    }

    /// Returns how much memory from the base on belongs to the file. This is known if the file is a
    /// program or a library with a readable program header table.
    fn size(&self) -> Option<usize> {
        let header = self.head()?;
        if usize::from(header.e_phentsize) != size_of::<libc::Elf64_Phdr>() {
            return None;
        }
        let first = self.base.wrapping_add(usize::try_from(header.e_phoff).ok()?);
        let bytes = usize::from(header.e_phnum) * size_of::<libc::Elf64_Phdr>();
        // Linkers put the table behind the header. A table at another offset may not be mapped.
        if header.e_phoff > 1024 || bytes > 3072 {
            return None;
        }
        let mut least = usize::MAX;
        let mut most = 0;
        for index in 0..usize::from(header.e_phnum) {
            let entry = (first as *const libc::Elf64_Phdr).wrapping_add(index);
            // SAFETY: within the first page, as checked above.
            let entry = unsafe { entry.read_unaligned() };
            if entry.p_type == libc::PT_LOAD {
                let (start, size) = (entry.p_vaddr as usize, entry.p_memsz as usize);
                least = least.min(start & !0xFFF);
                most = most.max(start.saturating_add(size));
            }
        }
        most.checked_sub(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ZERO: stanchion_machine::atomic::AtomicU64 =
        stanchion_machine::atomic::AtomicU64::new(0);
    static FULL: stanchion_machine::atomic::AtomicU64 =
        stanchion_machine::atomic::AtomicU64::new(1);

    fn text(name: &Name) -> &str {
        str::from_utf8(name.as_bytes()).unwrap()
    }

    #[test]
    fn statics_have_a_place() {
        let names = [&raw const ZERO as usize, &raw const FULL as usize].map(of_static);
        let me = std::env::current_exe().unwrap();
        for name in &names {
            let name = text(name.as_ref().ok().unwrap());
            assert!(name.starts_with(&format!("S{}+0x", me.display())), "{name}");
        }
    }

    #[test]
    fn what_is_no_static_has_none() {
        let heap = Box::new(5_u64);
        assert!(of_static(&raw const *heap as usize).is_err());
        let stack = 5_u64;
        assert!(of_static(&raw const stack as usize).is_err());
        assert_eq!(of_static(0).err(), Some(0..0));
        assert!(of_site(0).is_none());
    }

    #[test]
    fn code_has_a_place() {
        let code = code_has_a_place as *const () as usize;
        let name = of_site(code + 5).unwrap();
        assert!(text(&name).starts_with('C'), "{}", text(&name));
        assert!(text(&name).contains("preload"));
    }

    #[test]
    fn a_path_of_calls_has_an_offset_for_each() {
        let code = code_has_a_place as *const () as usize;
        let name = of_path(FUTEX, &[code + 5, code + 9, 1, code + 7]).unwrap();
        let (first, second) = text(&name).rsplit_once("+0x").unwrap();
        let offset = |text: &str| usize::from_str_radix(text, 16).unwrap();
        let (path, first) = first.rsplit_once("+0x").unwrap();
        assert_eq!(offset(second), offset(first) + 4);
        assert!(path.starts_with("P/") && !path.contains("+0x"), "{path}: the third is elsewhere");
        let long: Vec<usize> = (0..200).map(|at| code + at).collect();
        assert!(!of_path(FUTEX, &long).unwrap().cut);
    }

    #[test]
    fn without_the_mappings_names_are_the_same() {
        crate::linux::real::begin();
        module::begin();
        let code = code_has_a_place as *const () as usize;
        for address in [&raw const ZERO as usize, &raw const FULL as usize, code] {
            let (mut around, mut other) = (0..0, 0..0);
            let (one, base) = name(b'S', address, &mut around).unwrap();
            let (two, of) = name_by_module(b'S', address, &mut other).unwrap();
            assert_eq!((text(&one), base), (text(&two), of));
            assert!(other.contains(&address));
        }
        let heap = Box::new(5_u64);
        assert!(name_by_module(b'S', &raw const *heap as usize, &mut (0..0)).is_none());
        // The C library has its own path.
        let malloc = libc::malloc as *const () as usize;
        let (name, _) = name_by_module(b'C', malloc, &mut (0..0)).unwrap();
        assert!(text(&name).starts_with("C/") && text(&name).contains("libc"), "{}", text(&name));
    }

    #[test]
    fn long_paths_lose_their_front() {
        let mut name = Name::new();
        name.start(b'S', &[b'x'; 1_000]);
        name.finish(usize::MAX);
        assert!(!name.cut);
        assert!(text(&name).ends_with("x+0xffffffffffffffff"));
    }
}
