//! Tests of a slot's life, and of the threads that may free its blocks.

use super::super::*;
use proptest::prelude::*;
use stanchion_alone::alone;
use std::alloc::Layout;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

/// Returns whether the slot of that number is given out now. No other test gets it before the
/// result is dropped.
fn taken_again(number: usize) -> bool {
    // Each call takes the first free slot, so the slots up to that one are enough.
    let slots: Vec<_> = (0..=number).map_while(|_| Slot::take().ok()).collect();
    slots.iter().any(|slot| slot.number() == number)
}

#[test]
fn a_slot_is_free_when_the_last_value_of_its_run_is_dropped() {
    alone("arena::tests::life::a_slot_is_free_when_the_last_value_of_its_run_is_dropped", || {
        let run = || {
            let slot = Slot::take().unwrap();
            let _inside = slot.enter();
            ((1..=1_000).map(|n| vec![n; n]).collect::<Vec<_>>(), slot.number())
        };
        let (values, number) = run();
        // The run is over, its values are not.
        assert!(!taken_again(number));
        assert!(values.iter().zip(1..).all(|(value, n)| *value == vec![n; n]));
        let last = values.into_iter().next_back();
        assert!(!taken_again(number));
        // By another thread, which is not of the run.
        thread::spawn(move || drop(last)).join().unwrap();
        assert!(taken_again(number));
        // So with a stack.
        let slot = Slot::take().unwrap();
        let (stack, number) = (slot.stack(1).unwrap(), slot.number());
        drop(slot);
        assert!(!taken_again(number));
        drop(stack);
        assert!(taken_again(number));
    });
}

/// Bytes of memory that this process has.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    // SAFETY: the call takes a number only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * usize::try_from(page).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_free_slot_has_no_memory_and_is_zero() {
    const BYTES: usize = 64 << 20;
    alone("arena::tests::life::a_free_slot_has_no_memory_and_is_zero", || {
        let run = |fill| {
            let slot = Slot::take().unwrap();
            let _inside = slot.enter();
            let mut bytes = vec![0_u8; BYTES];
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(fill);
            (bytes.as_ptr().addr(), resident())
        };
        let before = resident();
        let (first, during) = run(1);
        assert!(during >= before + BYTES);
        assert!(resident() < before + BYTES / 8);
        assert_eq!(run(2).0, first);
    });
}

#[test]
fn no_slot_is_left_when_all_are_taken() {
    alone("arena::tests::life::no_slot_is_left_when_all_are_taken", || {
        // Of 16 TiB there are 4,096.
        let mut slots: Vec<_> = (0..4_096).map_while(|_| Slot::take().ok()).collect();
        let error = Slot::take().unwrap_err();
        assert!(matches!(error, ArenaError::Taken(count) if count == slots.len()), "{error}");
        // Every one of them can be used.
        let boxes: Vec<_> = slots
            .iter()
            .map(|slot| {
                let _inside = slot.enter();
                Box::new(slot.number())
            })
            .collect();
        assert!(boxes.iter().zip(0..).all(|(number, n)| **number == n));
        slots.swap_remove(0);
        drop(boxes);
        assert_eq!(Slot::take().unwrap().number(), 0);
    });
}

/// Lets the process have so much address space at most.
#[cfg(target_os = "linux")]
fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the call reads the structure only.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn less_address_space_gives_fewer_slots() {
    alone("arena::tests::life::less_address_space_gives_fewer_slots", || {
        limit(30 << 30);
        let slots: Vec<_> = (0..4).map(|_| Slot::take().unwrap()).collect();
        assert!(matches!(Slot::take(), Err(ArenaError::Taken(4))));
        let _inside = slots[3].enter();
        assert_eq!(vec![3; 1_000].len(), 1_000);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn too_little_address_space_is_an_error() {
    alone("arena::tests::life::too_little_address_space_is_an_error", || {
        limit(10 << 30);
        let error = Slot::take().unwrap_err();
        assert!(error.to_string().contains("ulimit -v"), "{error}");
        assert!(!Arena::is_installed());
    });
}

#[test]
fn blocks_are_freed_by_other_threads_while_their_run_goes_on() {
    const ROUNDS: usize = 20_000;
    thread::scope(|scope| {
        for _ in 0..2 {
            let (send, receive) = mpsc::sync_channel::<Vec<usize>>(64);
            // Two threads give, in slots of their own, to two that free; the channel's own memory
            // is the system's.
            scope.spawn(move || {
                let slot = Slot::take().unwrap();
                for round in 0..ROUNDS {
                    let vector = {
                        let _inside = slot.enter();
                        vec![round; 1 + round % 100]
                    };
                    send.send(vector).unwrap();
                }
            });
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    assert_eq!(receive.recv().unwrap(), vec![round; 1 + round % 100]);
                }
            });
        }
    });
}

#[test]
fn threads_that_share_a_slot_never_get_the_same_block() {
    const ROUNDS: u64 = 50_000;
    let slot = Slot::take().unwrap();
    thread::scope(|scope| {
        for thread in 0..2_u64 {
            let slot = &slot;
            scope.spawn(move || {
                let _inside = slot.enter();
                let mut held = VecDeque::new();
                for round in 0..ROUNDS {
                    held.push_back((round, Box::new(black_box([round, thread]))));
                    if held.len() == 8 {
                        let (then, words) = held.pop_front().unwrap();
                        assert_eq!(*words, [then, thread]);
                    }
                }
            });
        }
    });
}

#[derive(Clone, Debug)]
enum Request {
    Allocate(usize, u32, bool),
    Reallocate(usize, usize),
    Free(usize),
}

fn request() -> impl Strategy<Value = Request> {
    let size = prop_oneof![1_usize..200, 1_usize..20_000];
    prop_oneof![
        4 => (size.clone(), 0_u32..13, any::<bool>()).prop_map(|(size, log, zeroed)| Request::Allocate(size, log, zeroed)),
        2 => (any::<usize>(), size).prop_map(|(which, size)| Request::Reallocate(which, size)),
        3 => any::<usize>().prop_map(Request::Free),
    ]
}

/// A block and the byte that it is filled with.
struct Held {
    /// The block.
    block: *mut u8,
    /// Its layout.
    layout: Layout,
    /// The byte.
    fill: u8,
}

impl Held {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block has so many bytes, all written, and is this value's alone.
        unsafe { core::slice::from_raw_parts_mut(self.block, self.layout.size()) }
    }

    fn is_whole(&mut self) -> bool {
        let fill = self.fill;
        self.bytes().iter().all(|&byte| byte == fill)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No block is written by another's owner, for any request.
    #[test]
    fn no_block_is_given_twice(requests in prop::collection::vec(request(), 1..400)) {
        let slot = Slot::take().unwrap();
        let mut all: Vec<Held> = Vec::new();
        for (number, request) in requests.into_iter().enumerate() {
            let fill = number as u8;
            match request {
                Request::Allocate(size, log, zeroed) => {
                    let layout = Layout::from_size_align(size, 1 << log).unwrap();
                    let block = if zeroed { reserved::allocate_zeroed(slot.number(), layout) } else { reserved::allocate(slot.number(), layout) };
                    prop_assert!(!block.is_null() && block.addr() % layout.align() == 0);
                    if !zeroed {
                        // SAFETY: the block has so many bytes.
                        unsafe { block.write_bytes(0, size) };
                    }
                    let mut held = Held { block, layout, fill: 0 };
                    prop_assert!(held.is_whole());
                    held.fill = fill;
                    held.bytes().fill(fill);
                    all.push(held);
                }
                Request::Reallocate(which, size) if !all.is_empty() => {
                    let which = which % all.len();
                    let held = &mut all[which];
                    // SAFETY: the block is of the slot and of this layout; the size is small.
                    let moved = unsafe { reserved::reallocate(held.block, held.layout, size) };
                    prop_assert!(!moved.is_null() && moved.addr() % held.layout.align() == 0);
                    let kept = size.min(held.layout.size());
                    let align = held.layout.align();
                    *held = Held { block: moved, layout: Layout::from_size_align(kept, align).unwrap(), fill: held.fill };
                    prop_assert!(held.is_whole());
                    // SAFETY: the block has so many bytes now.
                    unsafe { moved.write_bytes(fill, size) };
                    *held = Held { block: moved, layout: Layout::from_size_align(size, align).unwrap(), fill };
                }
                Request::Free(which) if !all.is_empty() => {
                    let mut held = all.swap_remove(which % all.len());
                    prop_assert!(held.is_whole());
                    // SAFETY: the block is of the slot, of this layout, and no more in the list.
                    unsafe { reserved::free(held.block, held.layout) };
                }
                Request::Reallocate(..) | Request::Free(_) => {}
            }
        }
        for mut held in all {
            prop_assert!(held.is_whole());
            // SAFETY: the block is of the slot, of this layout, and no more in the list.
            unsafe { reserved::free(held.block, held.layout) };
        }
    }
}
