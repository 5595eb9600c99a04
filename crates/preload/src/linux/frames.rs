//! Reads the unwind tables of a module: the place of the caller's registers, for one address of a
//! function.
//!
//! The tables are `.eh_frame` and its index, in the format of DWARF with the additions of the Linux
//! Standard Base. Of each row three values are kept: the frame's outer end, the place of the return
//! address and that of the frame pointer. Entries of a layout that linkers do not write end a
//! search.

use core::ffi::c_void;
use core::mem;

use super::real::{self, Found};

/// The number of the stack pointer in unwind tables.
#[cfg(target_arch = "x86_64")]
pub(super) const STACK_POINTER: u64 = 7;
/// The number of the frame pointer.
#[cfg(target_arch = "x86_64")]
pub(super) const FRAME_POINTER: u64 = 6;
/// The number of the return address.
#[cfg(target_arch = "x86_64")]
const RETURN_ADDRESS: u64 = 16;

/// The number of the stack pointer in unwind tables.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const STACK_POINTER: u64 = 31;
/// The number of the frame pointer.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const FRAME_POINTER: u64 = 29;
/// The number of the return address.
#[cfg(not(target_arch = "x86_64"))]
const RETURN_ADDRESS: u64 = 30;

/// A module with unwind tables.
pub(super) struct Module {
    /// The first address.
    start: usize,
    /// The address after the last.
    end: usize,
    /// The address of the index of the tables.
    index: usize,
}

/// The caller's registers, as a table tells them for one address of a function.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The number of the register from which the frame's outer end is counted.
    pub(super) base: u64,
    /// The distance of the outer end from that register's value.
    pub(super) offset: isize,
    /// The place of the return address.
    pub(super) code: Rule,
    /// The place of the caller's frame pointer.
    pub(super) frame: Rule,
}

/// The place of a register's value for the caller.
#[derive(Clone, Copy)]
pub(super) enum Rule {
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
    pub(super) fn of(code: usize) -> Option<Self> {
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
    pub(super) fn row(&self, code: usize) -> Option<Row> {
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
        let initial = run(common.instructions, &common, lost, None, (start, usize::MAX))?;
        run(entry, &common, initial, Some(initial), (start, code))
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
/// row that a register is restored to. Returns the row.
fn run(
    mut bytes: Bytes,
    common: &Common,
    mut row: Row,
    initial: Option<Row>,
    (mut address, until): (usize, usize),
) -> Option<Row> {
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
    Some(row)
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

#[cfg(test)]
mod tests {
    use super::*;

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
