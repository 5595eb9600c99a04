//! Walks the calls of this thread, from the innermost outwards.
//!
//! Programs are built without frame pointers, so each step reads the unwind tables of the module
//! that contains the call ([`frames`](super::frames)). Of a frame three values are kept: the return
//! address, the stack pointer and the frame pointer. A frame that needs more ends the walk: one of
//! a signal handler, or one that is found by another register.
//!
//! The walk allocates nothing and takes no lock. It finds a module by `_dl_find_object` of the C
//! library, which waits for nothing. It reads the stack by `process_vm_readv`, which fails where
//! memory is not mapped: on a fiber or an alternate stack it cannot fault. Nothing of the stack but
//! return addresses is kept. Tables are read only within the addresses of their module, and are
//! trusted to be as a linker made them.

use core::ffi::c_void;
use core::mem;

use stanchion_competitive::waits::Loss;

use super::frames::{FRAME_POINTER, Module, Rule, STACK_POINTER};
use super::{errno, filter, table};

/// The most calls of a path.
const DEEPEST: usize = 20;

/// The most frames of a walk.
const STEPS: usize = 24;

/// The largest frame of a function, in bytes. A larger one ends the walk.
const LARGEST: usize = 1 << 20;

/// The registers of a frame, right after a call that it made has returned.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Registers {
    /// The address to which the call returns.
    pub(super) code: usize,
    /// The stack pointer.
    pub(super) stack: usize,
    /// The frame pointer.
    pub(super) frame: usize,
}

impl Registers {
    /// Returns registers of which only the address is known.
    pub(super) fn of_code(code: usize) -> Self {
        Self { code, stack: 0, frame: 0 }
    }
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

    /// Returns a hash of the path, of 63 bits. It is never 0.
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

/// The bits of an address that are not a signature.
#[cfg(target_arch = "x86_64")]
const CODE: usize = usize::MAX;
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
        (self.from, self.read) = (address, 0);
        let Some(_permit) = filter::permit() else { return };
        let size = mem::size_of_val(&self.words);
        let here = libc::iovec { iov_base: self.words.as_mut_ptr().cast(), iov_len: size };
        let there = libc::iovec { iov_base: address as *mut c_void, iov_len: size };
        let (here, there) = (&raw const here, &raw const there);
        // SAFETY: asks for a number.
        let process = unsafe { libc::getpid() };
        // As long as the kernel reads them: of a shorter one the rest would be what lies on the
        // stack.
        let (one, flags) = (1_usize, 0_usize);
        // SAFETY: the kernel writes into `words`, and refuses addresses that cannot be read.
        let got = unsafe {
            libc::syscall(libc::SYS_process_vm_readv, process, here, one, there, one, flags)
        };
        match usize::try_from(got) {
            Ok(bytes) => self.read = bytes / mem::size_of::<usize>(),
            // Memory that is not mapped ends a path, and is no loss.
            Err(_) if errno::last() == libc::EFAULT => {}
            Err(_) => table::lose(Loss::Stack),
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use core::hint::black_box;

    use super::super::real;
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
        assert!(inside(&paths[0], innermost as *const () as usize, 400) > 0);
        // The calls of itself return to one address, and the call of the innermost to another.
        assert!(inside(&paths[0], large::<24> as *const () as usize, 400) >= 2);
        assert!(inside(&paths[1], large::<1_000> as *const () as usize, 400) >= 2);
        // The test's own function and those that run tests.
        assert!(paths[0].addresses().len() > 5, "{}", paths[0].addresses().len());
        assert_ne!(paths[0].key(), paths[1].key());
    }

    /// Leaves bits in the memory of the calls to come, as a program does.
    #[inline(never)]
    fn litter() {
        black_box([0xA5_u8; 8192]);
    }

    #[test]
    fn words_are_read_whatever_lies_on_the_stack() {
        real::begin();
        let word = Box::new(42_usize);
        let address = (&raw const *word).addr();
        let mut stack = Stack { from: 0, words: [0; WORDS], read: 0 };
        litter();
        assert_eq!(stack.word(black_box(address)), Some(42));
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
}
