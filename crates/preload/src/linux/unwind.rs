//! Walks the calls of this thread, from the innermost outwards.
//!
//! Programs are built without frame pointers, so each step reads the unwind tables of the module
//! that contains the call (`.eh_frame`, the format of DWARF with the additions of the Linux
//! Standard Base). Of a frame three values are kept: the return address, the stack pointer and the
//! frame pointer. A frame that needs more ends the walk: one of a signal handler, or one that is
//! found by another register.
//!
//! The walk allocates nothing and takes no lock. It finds a module by `_dl_find_object` of the C
//! library, which waits for nothing. It reads the stack by `process_vm_readv`, which fails where
//! memory is not mapped: on a fiber or an alternate stack it cannot fault. Nothing of the stack but
//! return addresses is kept. Tables are read only within the addresses of their module, and are
//! trusted to be as a linker made them.

use core::ffi::c_void;
use core::mem;

use super::errno;
use super::real::{self, Found};

/// The most calls of a path.
const DEEPEST: usize = 20;

/// The most frames of a walk.
const STEPS: usize = 24;

/// The largest frame of a function, in bytes. A larger one ends the walk.
const LARGEST: usize = 1 << 20;

/// The registers of a frame, right after a call that it made has returned.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    /// The address to which the call returns.
    pub(super) code: usize,
    /// The stack pointer.
    pub(super) stack: usize,
    /// The frame pointer.
    pub(super) frame: usize,
}

/// The return addresses of calls, the innermost first.
pub(super) struct Path {
    /// The addresses. The first `length` of them are in use.
    addresses: [usize; DEEPEST],
    /// The number of addresses in use.
    length: usize,
}

impl Path {
    pub(super) fn addresses(&self) -> &[usize] {
        &self.addresses[..self.length]
    }

    /// Returns a number that is different for different paths, but for a chance of one in 2⁶³. It
    /// is never 0.
    pub(super) fn key(&self) -> usize {
        let mix = |key: u64, &address: &usize| {
            (key ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        };
        self.addresses().iter().fold(0x2545_F491_4F6C_DD1D, mix) as usize | 1
    }
}

/// Returns the path of calls that ends with the call that returns to `registers.code`.
pub(super) fn walk(mut registers: Registers) -> Path {
    let mut path = Path { addresses: [0; DEEPEST], length: 0 };
    let mut stack = Stack { from: 0, words: [0; WORDS], read: 0 };
    let mut steps = 0..STEPS;
    errno::kept(|| {
        while registers.code != 0 && path.length < DEEPEST && steps.next().is_some() {
            // A recursion counts once.
            if !path.addresses().contains(&registers.code) {
                path.addresses[path.length] = registers.code;
                path.length += 1;
            }
            match step(registers, &mut stack) {
                Some(caller) => registers = caller,
                None => break,
            }
        }
    });
    path
}

/// Returns the registers of the function that called this one.
fn step(registers: Registers, stack: &mut Stack) -> Option<Registers> {
    // The return address may already be of the next function.
    let code = registers.code.checked_sub(1)?;
    let module = Module::of(code)?;
    let row = module.row(code)?;
    let base = match row.base {
        STACK_POINTER => registers.stack,
        FRAME_POINTER => registers.frame,
        _ => return None,
    };
    let outer = base.checked_add_signed(row.offset)?;
    if outer <= registers.stack || outer - registers.stack > LARGEST {
        return None;
    }
    // The lower address first: one look at the stack then has both.
    let frame = match row.frame {
        Rule::Same => registers.frame,
        Rule::At(offset) => stack.word(outer.checked_add_signed(offset)?)?,
        // It is not known until a frame is found by the stack pointer.
        Rule::Lost => 0,
    };
    let Rule::At(offset) = row.code else { return None };
    let code = stack.word(outer.checked_add_signed(offset)?)? & CODE;
    Some(Registers { code, stack: outer, frame })
}

/// The number of the stack pointer in unwind tables.
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u64 = 7;
/// The number of the frame pointer.
#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: u64 = 6;
/// The number of the return address.
#[cfg(target_arch = "x86_64")]
const RETURN_ADDRESS: u64 = 16;
/// The bits of an address that are not a signature.
#[cfg(target_arch = "x86_64")]
const CODE: usize = usize::MAX;

/// The number of the stack pointer in unwind tables.
#[cfg(not(target_arch = "x86_64"))]
const STACK_POINTER: u64 = 31;
/// The number of the frame pointer.
#[cfg(not(target_arch = "x86_64"))]
const FRAME_POINTER: u64 = 29;
/// The number of the return address.
#[cfg(not(target_arch = "x86_64"))]
const RETURN_ADDRESS: u64 = 30;
/// The bits of an address that are not a signature.
#[cfg(not(target_arch = "x86_64"))]
const CODE: usize = (1 << 48) - 1;

/// The number of words that one look at the stack reads.
const WORDS: usize = 32;

/// The last look at the stack.
struct Stack {
    /// The address of the first word.
    from: usize,
    /// The words.
    words: [usize; WORDS],
    /// The number of words that could be read.
    read: usize,
}

impl Stack {
    /// Returns the word at `address`, if it can be read.
    fn word(&mut self, address: usize) -> Option<usize> {
        if !address.is_multiple_of(mem::size_of::<usize>()) {
            return None;
        }
        let index = |from: usize| address.wrapping_sub(from) / mem::size_of::<usize>();
        if index(self.from) >= self.read {
            self.look(address);
        }
        self.words[..self.read].get(index(self.from)).copied()
    }

    /// Reads words from `address` on. Behind a page that cannot be read there are none.
    fn look(&mut self, address: usize) {
        let size = mem::size_of_val(&self.words);
        let here = libc::iovec { iov_base: self.words.as_mut_ptr().cast(), iov_len: size };
        let there = libc::iovec { iov_base: address as *mut c_void, iov_len: size };
        let (here, there) = (&raw const here, &raw const there);
        // SAFETY: asks for a number.
        let process = unsafe { libc::getpid() };
        // SAFETY: the kernel writes into `words`, and refuses addresses that cannot be read.
        let got =
            unsafe { libc::syscall(libc::SYS_process_vm_readv, process, here, 1, there, 1, 0) };
        self.from = address;
        self.read = usize::try_from(got).map_or(0, |bytes| bytes / mem::size_of::<usize>());
    }
}

/// A module with unwind tables.
struct Module {
    /// The first address.
    start: usize,
    /// The address after the last.
    end: usize,
    /// The address of the index of the tables.
    index: usize,
}

/// The caller's registers, as a table tells them for one address of a function.
#[derive(Clone, Copy)]
struct Row {
    /// The number of the register from which the frame's outer end is counted.
    base: u64,
    /// The distance of the outer end from that register's value.
    offset: isize,
    /// The place of the return address.
    code: Rule,
    /// The place of the caller's frame pointer.
    frame: Rule,
}

/// The place of a register's value for the caller.
#[derive(Clone, Copy)]
enum Rule {
    /// The register has it still.
    Same,
    /// In memory, at this distance from the frame's outer end.
    At(isize),
    /// Elsewhere, or nowhere.
    Lost,
}

/// The part of a table that holds for all functions of one kind (a common information entry).
struct Common {
    /// The factor of advances.
    code_factor: usize,
    /// The factor of offsets.
    data_factor: isize,
    /// The encoding of addresses.
    encoding: u8,
    /// True if entries have a length of further data.
    has_data: bool,
    /// The instructions that come before those of a function.
    instructions: Bytes,
}

impl Common {
    /// Returns the rule for a register that is kept at so many units from the frame's outer end.
    fn at(&self, units: isize) -> Option<Rule> {
        units.checked_mul(self.data_factor).map(Rule::At)
    }
}

impl Module {
    /// Returns the module that contains the address `code`.
    fn of(code: usize) -> Option<Self> {
        let find = real::find_object()?;
        // SAFETY: plain numbers and pointers, for which zeros are a value.
        let mut found: Found = unsafe { mem::zeroed() };
        // SAFETY: writes to `found`, which is as large as the C library's structure.
        let result = unsafe { find(code as *const c_void, &mut found) };
        let module =
            Self { start: found.start.addr(), end: found.end.addr(), index: found.index.addr() };
        let inside = (module.start..module.end).contains(&module.index);
        (result == 0 && inside).then_some(module)
    }

    /// Returns the bytes from `address` to the module's end.
    fn bytes(&self, address: usize) -> Option<Bytes> {
        let inside = (self.start..self.end).contains(&address);
        inside.then_some(Bytes { at: address, end: self.end })
    }

    /// Returns the row of the table for the address `code`.
    fn row(&self, code: usize) -> Option<Row> {
        let entry = self.entry(code)?;
        let mut entry = self.bytes(entry)?.sized()?;
        let here = entry.at;
        let common = self.common(here.checked_sub(entry.u32()? as usize)?)?;
        let start = entry.pointer(common.encoding)?;
        let length = entry.pointer(common.encoding & SIZE)?;
        if code.checked_sub(start)? >= length {
            return None;
        }
        if common.has_data {
            let length = entry.unsigned()?;
            entry.skip(length as usize)?;
        }
        let lost = Row { base: u64::MAX, offset: 0, code: Rule::Lost, frame: Rule::Same };
        let (initial, _) = run(common.instructions, &common, lost, None, (start, usize::MAX))?;
        let (row, _) = run(entry, &common, initial, Some(initial), (start, code))?;
        Some(row)
    }

    /// Returns the address of the entry for the function that may contain `code`, by a binary
    /// search of the index.
    fn entry(&self, code: usize) -> Option<usize> {
        let mut index = self.bytes(self.index)?;
        let head = index.u32()?.to_le_bytes();
        // Version 1, and a sorted table of pairs of 32-bit distances from the index.
        if head[0] != 1 || head[2] & SIZE != 0x03 || head[3] != 0x3B {
            return None;
        }
        index.pointer(head[1])?;
        let number = index.u32()? as usize;
        let pair = |at: usize| {
            let mut bytes = self.bytes(index.at.checked_add(at.checked_mul(8)?)?)?;
            let (function, entry) = (bytes.u32()? as i32, bytes.u32()? as i32);
            let from = |distance: i32| self.index.checked_add_signed(distance as isize);
            Some((from(function)?, from(entry)?))
        };
        let (mut low, mut high) = (0, number);
        while low < high {
            let middle = low + (high - low) / 2;
            if pair(middle)?.0 <= code { low = middle + 1 } else { high = middle }
        }
        Some(pair(low.checked_sub(1)?)?.1)
    }

    /// Reads the common part at `address`.
    fn common(&self, address: usize) -> Option<Common> {
        let mut bytes = self.bytes(address)?.sized()?;
        let (zero, version) = (bytes.u32()?, bytes.u8()?);
        if zero != 0 || !matches!(version, 1 | 3) {
            return None;
        }
        let mut letters = [0; 8];
        let mut number = 0;
        loop {
            match bytes.u8()? {
                0 => break,
                letter => {
                    *letters.get_mut(number)? = letter;
                    number += 1;
                }
            }
        }
        let code_factor = bytes.unsigned()? as usize;
        let data_factor = bytes.signed()?;
        let register = if version == 1 { u64::from(bytes.u8()?) } else { bytes.unsigned()? };
        if register != RETURN_ADDRESS {
            return None;
        }
        let (mut encoding, mut has_data) = (0, false);
        for letter in &letters[..number] {
            match letter {
                b'z' => {
                    has_data = true;
                    bytes.unsigned()?;
                }
                b'R' => encoding = bytes.u8()?,
                b'L' => {
                    bytes.u8()?;
                }
                b'P' => {
                    let encoding = bytes.u8()?;
                    bytes.pointer(encoding & SIZE)?;
                }
                b'B' => {}
                // A frame of a signal handler, or an addition that is not known.
                _ => return None,
            }
        }
        Some(Common { code_factor, data_factor, encoding, has_data, instructions: bytes })
    }
}

/// The bits of an encoding that say how large an address is.
const SIZE: u8 = 0x0F;
/// The bits that say from where it counts.
const FROM: u8 = 0x70;
/// The bit of an address that has the address of the address.
const INDIRECT: u8 = 0x80;

/// Bytes of a table that were not read yet.
#[derive(Clone, Copy)]
struct Bytes {
    /// The address of the next one.
    at: usize,
    /// The address after the last one.
    end: usize,
}

impl Bytes {
    fn skip(&mut self, number: usize) -> Option<usize> {
        let at = self.at;
        let after = at.checked_add(number).filter(|&after| after <= self.end)?;
        self.at = after;
        Some(at)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let at = self.skip(N)? as *const [u8; N];
        // SAFETY: within the addresses of a module that contains a function of this thread's path,
        // so the module stays. The loader has mapped its tables for reading.
        Some(unsafe { at.read_unaligned() })
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the length of an entry, and returns the entry.
    fn sized(mut self) -> Option<Self> {
        let length = self.u32()?;
        // Longer ones have another layout, and 0 ends the tables.
        if length == 0 || length == u32::MAX {
            return None;
        }
        let start = self.at;
        self.skip(length as usize)?;
        Some(Self { at: start, end: self.at })
    }

    /// Reads a number of variable length.
    fn unsigned(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.u8()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    /// Reads a number of variable length with a sign.
    fn signed(&mut self) -> Option<isize> {
        let (mut number, mut shift) = (0_i64, 0);
        loop {
            let byte = self.u8()?;
            number |= i64::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                if byte & 0x40 != 0 && shift < i64::BITS {
                    number |= -1 << shift;
                }
                return Some(number as isize);
            }
        }
    }

    /// Reads an address or a length of the encoding.
    fn pointer(&mut self, encoding: u8) -> Option<usize> {
        let at = self.at;
        let value = match encoding & SIZE {
            0x00 | 0x04 | 0x0C => u64::from_le_bytes(self.array()?) as usize,
            0x02 => usize::from(u16::from_le_bytes(self.array()?)),
            0x0A => i16::from_le_bytes(self.array()?) as usize,
            0x03 => self.u32()? as usize,
            0x0B => self.u32()? as i32 as usize,
            _ => return None,
        };
        if encoding & INDIRECT != 0 {
            return None;
        }
        match encoding & FROM {
            0x00 => Some(value),
            0x10 => Some(at.wrapping_add(value)),
            _ => None,
        }
    }
}

/// The deepest nesting of rows that are kept for later.
const KEPT: usize = 4;

/// Follows instructions from `row` on until they are of an address after `until`. `initial` is the
/// row that a register is restored to. Returns the row, and the address that it begins at.
fn run(
    mut bytes: Bytes,
    common: &Common,
    mut row: Row,
    initial: Option<Row>,
    (mut address, until): (usize, usize),
) -> Option<(Row, usize)> {
    let mut kept = [row; KEPT];
    let mut depth = 0;
    while bytes.at < bytes.end {
        let instruction = bytes.u8()?;
        let low = u64::from(instruction & 0x3F);
        let advance = match (instruction & 0xC0, instruction) {
            (0x40, _) => Some(low as usize),
            (_, 0x02) => Some(usize::from(bytes.u8()?)),
            (_, 0x03) => Some(usize::from(u16::from_le_bytes(bytes.array()?))),
            (_, 0x04) => Some(bytes.u32()? as usize),
            _ => None,
        };
        if let Some(advance) = advance {
            address = address.checked_add(advance.checked_mul(common.code_factor)?)?;
            if address > until {
                break;
            }
            continue;
        }
        match (instruction & 0xC0, instruction) {
            // The register is kept in memory.
            (0x80, _) => row.set(low, common.at(bytes.unsigned()? as isize)?),
            (_, 0x05) => {
                let register = bytes.unsigned()?;
                row.set(register, common.at(bytes.unsigned()? as isize)?);
            }
            (_, 0x11) => {
                let register = bytes.unsigned()?;
                row.set(register, common.at(bytes.signed()?)?);
            }
            // It is as at the function's beginning.
            (0xC0, _) => row.restore(low, initial?),
            (_, 0x06) => row.restore(bytes.unsigned()?, initial?),
            (_, 0x08) => row.set(bytes.unsigned()?, Rule::Same),
            // It has no value, or is in another register, or is computed.
            (_, 0x07) => row.set(bytes.unsigned()?, Rule::Lost),
            (_, 0x09 | 0x14) => {
                row.set(bytes.unsigned()?, Rule::Lost);
                bytes.unsigned()?;
            }
            (_, 0x15) => {
                row.set(bytes.unsigned()?, Rule::Lost);
                bytes.signed()?;
            }
            (_, 0x10 | 0x16) => {
                row.set(bytes.unsigned()?, Rule::Lost);
                let length = bytes.unsigned()?;
                bytes.skip(length as usize)?;
            }
            // The row is kept for later, or the last kept one is taken.
            (_, 0x0A) => {
                *kept.get_mut(depth)? = row;
                depth += 1;
            }
            (_, 0x0B) => {
                depth = depth.checked_sub(1)?;
                row = kept[depth];
            }
            // The frame's outer end.
            (_, 0x0C) => {
                row.base = bytes.unsigned()?;
                row.offset = bytes.unsigned()? as isize;
            }
            (_, 0x12) => {
                row.base = bytes.unsigned()?;
                row.offset = bytes.signed()?.checked_mul(common.data_factor)?;
            }
            (_, 0x0D) => row.base = bytes.unsigned()?,
            (_, 0x0E) => row.offset = bytes.unsigned()? as isize,
            (_, 0x13) => row.offset = bytes.signed()?.checked_mul(common.data_factor)?,
            (_, 0x0F) => {
                row.base = u64::MAX;
                let length = bytes.unsigned()?;
                bytes.skip(length as usize)?;
            }
            // Nothing; the state of a signature; the size of arguments.
            (_, 0x00 | 0x2D) => {}
            (_, 0x2E) => {
                bytes.unsigned()?;
            }
            _ => return None,
        }
    }
    Some((row, address))
}

impl Row {
    fn set(&mut self, register: u64, rule: Rule) {
        match register {
            RETURN_ADDRESS => self.code = rule,
            FRAME_POINTER => self.frame = rule,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64, initial: Self) {
        match register {
            RETURN_ADDRESS => self.code = initial.code,
            FRAME_POINTER => self.frame = initial.frame,
            _ => {}
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use core::hint::black_box;

    use super::*;

    /// Returns the registers of the caller.
    #[unsafe(naked)]
    extern "C" fn here(registers: *mut Registers) {
        core::arch::naked_asm!(
            "mov rax, [rsp]",
            "mov [rdi], rax",
            "lea rax, [rsp + 8]",
            "mov [rdi + 8], rax",
            "mov [rdi + 16], rbp",
            "ret"
        )
    }

    const _: () = assert!(mem::offset_of!(Registers, code) == 0);
    const _: () = assert!(mem::offset_of!(Registers, stack) == 8);
    const _: () = assert!(mem::offset_of!(Registers, frame) == 16);

    #[inline(never)]
    fn innermost(paths: &mut Vec<Path>) {
        let mut registers = Registers { code: 0, stack: 0, frame: 0 };
        here(&mut registers);
        paths.push(walk(registers));
    }

    /// Has a frame of a size that only the tables tell.
    #[inline(never)]
    fn large<const N: usize>(depth: usize, paths: &mut Vec<Path>) {
        let room = black_box([depth as u8; N]);
        if depth > 0 {
            large::<N>(depth - 1, paths)
        } else {
            innermost(paths)
        }
        black_box(room);
    }

    /// Returns the number of addresses within the first bytes of the function at `start`.
    fn inside(path: &Path, start: usize, bytes: usize) -> usize {
        path.addresses().iter().filter(|&&code| (start..start + bytes).contains(&code)).count()
    }

    #[test]
    fn every_call_is_found() {
        real::begin();
        let mut paths = Vec::new();
        large::<24>(3, &mut paths);
        large::<1_000>(5, &mut paths);
        assert_eq!(inside(&paths[0], innermost as *const () as usize, 400), 1);
        // The calls of itself return to one address, and the call of the innermost to another.
        assert_eq!(inside(&paths[0], large::<24> as *const () as usize, 400), 2);
        assert_eq!(inside(&paths[1], large::<1_000> as *const () as usize, 400), 2);
        // The test's own function and those that run tests.
        assert!(paths[0].addresses().len() > 5, "{}", paths[0].addresses().len());
        assert_ne!(paths[0].key(), paths[1].key());
    }

    #[test]
    fn memory_that_cannot_be_read_ends_a_walk() {
        real::begin();
        let mut registers = Registers { code: 0, stack: 0, frame: 0 };
        here(&mut registers);
        let nowhere = Registers { stack: 4096, frame: 8192, ..registers };
        assert_eq!(walk(nowhere).addresses().len(), 1);
        let no_code = Registers { code: 4096, ..registers };
        assert_eq!(walk(no_code).addresses(), [4096]);
        assert!(walk(Registers { code: 0, ..registers }).addresses().is_empty());
    }

    #[test]
    fn numbers_of_variable_length() {
        let bytes: [u8; 8] = [0xE5, 0x8E, 0x26, 0x7F, 0x80, 0x7F, 0x02, 0x80];
        let at = bytes.as_ptr().addr();
        let mut bytes = Bytes { at, end: at + bytes.len() };
        assert_eq!(bytes.unsigned(), Some(624_485));
        assert_eq!((bytes.signed(), bytes.signed()), (Some(-1), Some(-128)));
        assert_eq!((bytes.signed(), bytes.signed()), (Some(2), None));
    }
}
