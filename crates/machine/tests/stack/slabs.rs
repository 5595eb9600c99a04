//! Slabs, their stacks and their guards.

use std::fs;

use stanchion_machine::stack::{Guards, Size, Slab, StackError, guards};

use super::{ADVICE, on, slab, taken};
use stanchion_alone::alone;

#[test]
fn stacks_of_a_slab_lie_apart_with_guards_between() {
    for kind in [guards(), Guards::Protected] {
        let mut slab = slab(40, kind);
        assert_eq!((slab.guards(), slab.left()), (kind, 40));
        let stacks: Vec<_> = std::iter::from_fn(|| slab.next_stack().unwrap()).collect();
        assert_eq!((stacks.len(), slab.left()), (40, 0));
        assert!(slab.next_stack().unwrap().is_none());
        for stack in &stacks {
            let room = stack.base().get() - stack.limit().get() - stack.size().guard();
            assert!(((31 << 10)..(32 << 10)).contains(&room), "{room}");
            assert_eq!((stack.base().get() % 64, stack.limit().get() % 4096), (0, 0));
        }
        for pair in stacks.windows(2) {
            assert!(pair[0].base() <= pair[1].limit());
        }
    }
}

#[test]
fn a_stack_keeps_its_memory_when_the_slab_is_dropped_first() {
    let mut slab = slab(2, guards());
    let (first, second) = (taken(&mut slab), taken(&mut slab));
    drop(slab);
    drop(first);
    second.set_name(Some("last"));
    let (sum, second) = on(second, || (1..=100).sum::<u32>());
    assert_eq!((sum, second.name().as_deref()), (5050, Some("last")));
}

#[test]
fn a_discarded_stack_is_empty_and_usable_and_its_guard_stands() {
    for kind in [guards(), Guards::Protected] {
        let stack = taken(&mut slab(2, kind));
        stack.set_name(Some("before"));
        let (_, mut stack) = on(stack, || super::overflow::descend(20));
        // SAFETY: nothing is on the stack.
        unsafe { stack.discard() };
        assert_eq!(stack.name(), None);
        let (sum, stack) = on(stack, || super::overflow::descend(20));
        assert_eq!(sum, 210);
        assert!(
            !readable(stack.limit().get())
                && !readable(stack.limit().get() + stack.size().guard() - 1)
        );
        assert!(readable(stack.limit().get() + stack.size().guard()));
    }
}

/// Returns whether a byte is readable, by a system call that fails instead of raising a signal.
fn readable(address: usize) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: the array has room for two numbers.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the kernel checks whether the byte can be read.
    let written = unsafe { libc::write(pipe[1], std::ptr::without_provenance(address), 1) };
    for end in pipe {
        // SAFETY: the descriptor is this function's.
        unsafe { libc::close(end) };
    }
    written == 1
}

#[test]
fn a_child_has_guards_too() {
    for kind in [guards(), Guards::Protected] {
        let stack = taken(&mut slab(2, kind));
        let guard = stack.limit().get();
        // SAFETY: the child only calls what a handler may, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(readable(guard));
            // SAFETY: ends the child.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the child is this process's, and `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "{kind:?}");
    }
}

#[test]
fn no_address_space_is_an_error_that_names_the_limit() {
    alone("slabs::no_address_space_is_an_error_that_names_the_limit", || {
        let limit = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
        // SAFETY: the limit is initialized.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let size = Size::of(1 << 30).unwrap();
        let error = Slab::new(size, 4, guards(), ADVICE).unwrap_err();
        assert_eq!(error, StackError::AddressSpace { bytes: 4 * size.stride(), limit: 1 << 30 });
        assert!(error.to_string().contains("ulimit -v"), "{error}");
    });
}

#[test]
fn more_than_there_are_addresses_is_an_error() {
    let size = Size::of(Size::MOST).unwrap();
    for stacks in [1 << 20, usize::MAX] {
        let error = Slab::new(size, stacks, guards(), ADVICE).unwrap_err();
        assert!(
            matches!(error, StackError::Memory { .. } | StackError::AddressSpace { .. }),
            "{error}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn installed_guards_need_no_mappings_and_untouched_stacks_no_memory() {
    alone("slabs::installed_guards_need_no_mappings_and_untouched_stacks_no_memory", || {
        if guards() == Guards::Protected {
            return;
        }
        let mappings = || fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let before = mappings();
        let mut slab = slab(10_000, Guards::Installed);
        let stacks: Vec<_> = std::iter::from_fn(|| slab.next_stack().unwrap()).collect();
        assert!(mappings() <= before + 8, "{} mappings, {before} before", mappings());
        let resident: usize = {
            let pages = fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(1).unwrap().parse().unwrap()
        };
        assert!(resident < 10_000, "{resident} pages for {} stacks", stacks.len());
    });
}

#[test]
#[cfg(target_os = "linux")]
fn when_mappings_run_out_the_error_names_the_setting_and_nothing_is_lost() {
    alone("slabs::when_mappings_run_out_the_error_names_the_setting_and_nothing_is_lost", || {
        let limit = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        if limit > 200_000 {
            return;
        }
        let mut slab = slab(limit, Guards::Protected);
        let mut stacks = Vec::new();
        let error = loop {
            match slab.next_stack() {
                Ok(stack) => {
                    stacks.push(stack.expect("as many as the limit, and half of that fit"))
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error, StackError::Mappings { limit });
        let text = error.to_string();
        assert!(text.contains("vm.max_map_count=") && text.contains("6.13"), "{text}");
        assert!(stacks.len() > limit / 2 - 1000, "{}", stacks.len());
        assert_eq!(slab.left(), limit - stacks.len(), "the one that failed is still there");
        let (sum, stack) = on(stacks.pop().unwrap(), || super::overflow::descend(20));
        assert_eq!(sum, 210);
        drop((slab, stack, stacks));
        taken(&mut super::slab(1, Guards::Protected));
    });
}
