//! The tests of this crate run with [`Arena`] as their allocator.

mod life;
mod stacks;

use super::*;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc};
use std::hint::black_box;
use std::thread;

#[global_allocator]
static ARENA: Arena = Arena;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// A block of the slot, and its offset there.
fn block(slot: &Slot, layout: Layout) -> (*mut u8, usize) {
    assert!(layout.size() > 0);
    let _inside = slot.enter();
    // SAFETY: the size is not 0.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        handle_alloc_error(layout);
    }
    (block, block.addr() - slot.base())
}

/// Returns the addresses of a program's blocks and stacks. They depend on nothing but the program.
fn layout_of_a_program(slot: &Slot) -> Vec<usize> {
    let mut offsets = Vec::with_capacity(10_000);
    let mut stacks = Vec::with_capacity(100);
    let mut held: Vec<(NonNull<u8>, Layout)> = Vec::with_capacity(10_000);
    let mut random = 1_u64;
    for _ in 0..10_000 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = (random >> 33) as usize;
        match dice % 8 {
            0 => {
                let stack = slot.stack(1 << (10 + dice % 9)).unwrap();
                offsets.push(corosensei::stack::Stack::base(&stack).get() - slot.base());
                stacks.push(stack);
                if stacks.len() == 50 {
                    stacks.drain(..25);
                }
            }
            1..=3 if !held.is_empty() => {
                let (block, layout) = held.swap_remove(dice % held.len());
                // SAFETY: allocated below with this layout, and no more on the list.
                unsafe { dealloc(block.as_ptr(), layout) };
            }
            _ => {
                let layout = layout(1 + dice % (1 << (dice % 14)), 1 << (dice % 9));
                let (block, offset) = block(slot, layout);
                offsets.push(offset);
                held.push((NonNull::new(block).unwrap(), layout));
            }
        }
    }
    for (block, layout) in held {
        // SAFETY: allocated above with this layout, once on the list.
        unsafe { dealloc(block.as_ptr(), layout) };
    }
    offsets
}

#[test]
fn the_same_requests_have_the_same_offsets() {
    let first = layout_of_a_program(&Slot::take().unwrap());
    assert!(first.len() > 5_000);
    // One after the other, side by side, and on another thread.
    let (one, two) = (Slot::take().unwrap(), Slot::take().unwrap());
    assert_ne!(one.base(), two.base());
    assert_eq!(layout_of_a_program(&one), first);
    assert_eq!(layout_of_a_program(&two), first);
    thread::scope(|scope| {
        let threads = [0; 2].map(|_| scope.spawn(|| layout_of_a_program(&Slot::take().unwrap())));
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [first.clone(), first.clone()]);
    });
}

#[test]
fn a_test_of_this_crate_has_the_arena() {
    assert!(Arena::is_installed());
    let slot = Slot::take().unwrap();
    let before = Box::new(1_u64);
    let (inside, own) = {
        let _inside = slot.enter();
        let inside = Box::new(2_u64);
        let _outside = outside();
        (inside, Box::new(3_u64))
    };
    let after = Box::new(4_u64);
    let held = |number: &u64| reserved::holds((&raw const *number).addr());
    assert_eq!(
        [&before, &inside, &own, &after].map(|number| held(number)),
        [false, true, false, false]
    );
}

#[test]
fn small_blocks_share_lines_and_greater_ones_do_not() {
    let slot = Slot::take().unwrap();
    let offsets = |size| -> Vec<usize> {
        let blocks: Vec<_> = (0..9).map(|_| block(&slot, layout(size, 8))).collect();
        for &(block, _) in &blocks {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(block, layout(size, 8)) };
        }
        blocks.iter().map(|block| block.1 - blocks[0].1).collect()
    };
    assert_eq!(offsets(16), [0, 16, 32, 48, 64, 80, 96, 112, 128]);
    assert_eq!(offsets(40), [0, 64, 128, 192, 256, 320, 384, 448, 512]);
    assert_eq!(offsets(64), [0, 128, 256, 384, 512, 640, 768, 896, 1_024]);
    assert_eq!(offsets(130), [0, 256, 512, 768, 1_024, 1_280, 1_536, 1_792, 2_048]);
}

#[test]
fn blocks_are_aligned_as_asked_and_do_not_overlap() {
    let slot = Slot::take().unwrap();
    let mut blocks = Vec::new();
    for log in 0..=12 {
        for size in [1, 15, 16, 17, 63, 64, 100, 1_000, 4_096, 5_000, 70_000] {
            let layout = layout(size, 1 << log);
            let (block, offset) = block(&slot, layout);
            assert_eq!(offset % layout.align().max(16), 0);
            blocks.push((offset, size, block, layout));
        }
    }
    blocks.sort_unstable_by_key(|block| block.0);
    assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    for (_, _, block, layout) in blocks {
        // SAFETY: allocated above with this layout.
        unsafe { dealloc(block, layout) };
    }
}

#[test]
fn the_last_block_freed_is_the_next_one_given() {
    let slot = Slot::take().unwrap();
    let blocks = [0; 3].map(|_| block(&slot, layout(200, 8)));
    for (block, _) in blocks {
        // SAFETY: allocated above with this layout.
        unsafe { dealloc(block, layout(200, 8)) };
    }
    let again = [0; 3].map(|_| block(&slot, layout(200, 8)));
    assert_eq!(again.map(|block| block.1), [blocks[2].1, blocks[1].1, blocks[0].1]);
    for (block, _) in again {
        // SAFETY: allocated above with this layout.
        unsafe { dealloc(block, layout(200, 8)) };
    }
}

#[test]
fn nothing_takes_no_memory() {
    let slot = Slot::take().unwrap();
    let _inside = slot.enter();
    let (nothing, empty) = (Box::new(()), Vec::<u64>::new());
    assert!(
        !reserved::holds((&raw const *nothing).addr()) && !reserved::holds(empty.as_ptr().addr())
    );
    let block = reserved::allocate(slot.number(), layout(0, 1));
    assert!(reserved::holds(block.addr()));
    // SAFETY: allocated above with this layout.
    unsafe { reserved::free(block, layout(0, 1)) };
}

#[test]
fn zeroed_blocks_are_zero_also_when_they_are_used_again() {
    let slot = Slot::take().unwrap();
    let _inside = slot.enter();
    for size in [16, 40, 64, 1_000, 100_000] {
        for _ in 0..3 {
            // SAFETY: the size is not 0.
            let block = unsafe { alloc_zeroed(layout(size, 8)) };
            // SAFETY: the block has so many bytes, and is this test's alone.
            let bytes = unsafe { core::slice::from_raw_parts_mut(block, size) };
            assert!(bytes.iter().all(|&byte| byte == 0), "{size}");
            bytes.fill(0xA5);
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(block, layout(size, 8)) };
        }
    }
}

#[test]
fn a_block_keeps_what_is_in_it_when_it_moves() {
    let slot = Slot::take().unwrap();
    let mut numbers = {
        let _inside = slot.enter();
        Vec::with_capacity(1)
    };
    // Inside and outside by turns: it stays in its slot.
    for number in 0..100_000_u32 {
        let _here = if number % 2 == 0 { slot.enter() } else { outside() };
        numbers.push(number);
        assert!(reserved::holds(numbers.as_ptr().addr()));
    }
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    // What was the system's stays there.
    let mut own = vec![1_u8];
    let _inside = slot.enter();
    own.resize(1 << 20, 2);
    assert!(!reserved::holds(own.as_ptr().addr()));
}

#[test]
fn a_full_slot_says_so() {
    let slot = Slot::take().unwrap();
    let _inside = slot.enter();
    let giga = layout(1 << 30, 128);
    // SAFETY: the size is not 0.
    let blocks: Vec<_> = (0..4).map(|_| black_box(unsafe { alloc(giga) })).collect();
    // The first line is unused, so only three fit.
    assert_eq!(blocks.iter().filter(|block| block.is_null()).count(), 1);
    // SAFETY: allocated above with this layout; there is no room for twice as much.
    assert!(black_box(unsafe { realloc(blocks[0], giga, 2 << 30) }).is_null());
    // SAFETY: the size is not 0. The compiler may assume that an unused allocation succeeds.
    assert!(black_box(unsafe { alloc(layout(5 << 30, 8)) }).is_null());
    assert!(matches!(slot.stack(1 << 30), Err(ArenaError::Stacks(1))));
    assert!(matches!(slot.stack(2 << 30), Err(ArenaError::Long(_))));
    assert!(slot.stack(1 << 20).is_ok());
    for block in blocks.into_iter().filter(|block| !block.is_null()) {
        // SAFETY: allocated above with this layout.
        unsafe { dealloc(block, giga) };
    }
}
