//! Control blocks: the memory of a ready task, and the chains in which blocks wait.
//!
//! A strategy does not know what it manages: a closure of a pool, a user-level thread, a null
//! thread of an experiment. It sees blocks of one size with a link at the front. Its user decides
//! what the words behind the link mean. So one strategy serves them all, and a free block serves
//! any next task.
//!
//! Why not a `Box<dyn FnOnce>`: the allocator would be asked for each task. It answers with a
//! search, a lock of its own, and a block that another processor has in its cache. Why one size: a
//! free list is then two loads and a store (section 2 of the paper).
//!
//! ```text
//! ControlBlock, 128 bytes
//! +------+--------+------------------------------------------+
//! | link | shared | 14 words: what to run, and its arguments |
//! +------+--------+------------------------------------------+
//!    '--> the next block of the list in which it is
//! ```
//!
//! # Invariants
//!
//! 1. A [`Task`] owns its block: only the thread that holds it touches the block. Only the word
//!    `shared` may be read by other threads, which have agreed on it with the thread that fills the
//!    block.
//! 2. A block is in one [`Chain`] at most, which owns it then. The links of other blocks mean
//!    nothing.
//! 3. Blocks are never freed while the [`Slabs`](super::slab::Slabs) that they were cut from are
//!    alive.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 2.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use stanchion_machine::atomic::{AtomicUsize, Fresh};
use stanchion_machine::cell::UnsafeCell;

/// Words behind the link of a control block.
pub const TASK_WORDS: usize = 14;

/// The front of a block or a stack, by which it is linked into a list.
#[repr(C)]
pub struct Link(UnsafeCell<Option<NonNull<Link>>>);

impl Link {
    /// Creates a link that leads nowhere.
    #[must_use]
    pub fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Returns where the link leads.
    ///
    /// # Safety
    ///
    /// The link is alive. The caller owns the value with the link, or the chain in which that is.
    #[inline]
    unsafe fn next(link: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: the caller's promise.
        let link = unsafe { link.as_ref() };
        // SAFETY: likewise.
        link.0.with(|next| unsafe { *next })
    }

    /// Makes it lead to `next`.
    ///
    /// # Safety
    ///
    /// As for [`next`](Self::next).
    #[inline]
    unsafe fn lead(link: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: the caller's promise.
        let link = unsafe { link.as_ref() };
        // SAFETY: likewise.
        link.0.with_mut(|cell| unsafe { *cell = next });
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// The memory of a task: a link, and [`TASK_WORDS`] words that belong to the thread that fills it.
#[repr(C, align(128))]
pub(crate) struct ControlBlock {
    /// The next block of the chain.
    link: Link,
    /// A word that other threads may read (Invariant 1).
    shared: AtomicUsize,
    /// The words of the user.
    words: UnsafeCell<[MaybeUninit<usize>; TASK_WORDS]>,
}

impl ControlBlock {
    pub(crate) fn new() -> Self {
        Self {
            link: Link::new(),
            shared: AtomicUsize::fresh(0),
            words: UnsafeCell::new([MaybeUninit::uninit(); TASK_WORDS]),
        }
    }
}

/// A control block and the right to use it: one word, never null. A [`Strategy`](crate::Strategy)
/// manages values of this type.
///
/// It is not `Clone`: there is one for each block, and it is either in a strategy or with the
/// thread that took it out. Dropping one loses the block until its strategy is dropped, but nothing
/// worse. Give it back with [`Strategy::release`](crate::Strategy::release).
#[derive(PartialEq, Eq)]
pub struct Task(NonNull<ControlBlock>);

// SAFETY: it owns the block (Invariant 1). The thread that fills the words answers for them, and
// `words` is unsafe to use.
unsafe impl Send for Task {}

impl Task {
    /// Returns the words of the block, [`TASK_WORDS`] of them. They are aligned to 8 bytes, and not
    /// initialised when the block is new.
    ///
    /// They may be read and written through the pointer for as long as the caller has this task.
    #[inline]
    #[must_use]
    pub fn words(&self) -> NonNull<usize> {
        // SAFETY: the block is alive (Invariant 3).
        let block = unsafe { self.0.as_ref() };
        // A write, so that a machine that checks and charges for accesses sees the caller's.
        block.words.with_mut(|words| {
            // SAFETY: the address of a field.
            unsafe { NonNull::new_unchecked(words.cast::<usize>()) }
        })
    }

    /// Returns a word of the block that other threads may read while it is in use. Threads that
    /// agree on it may keep its address until the block is released. It is zero in a new block, and
    /// else what it was.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> &AtomicUsize {
        // SAFETY: the block is alive (Invariant 3).
        unsafe { &(*self.0.as_ptr()).shared }
    }

    /// Returns the task as a word.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> NonNull<()> {
        self.0.cast()
    }

    /// Returns the task that became this word.
    ///
    /// # Safety
    ///
    /// The word is from [`into_raw`](Self::into_raw), of which this is the one use.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self(raw.cast())
    }

    /// # Safety
    ///
    /// The block is alive, in no list, and no other thread has it.
    pub(crate) unsafe fn of(block: NonNull<ControlBlock>) -> Self {
        Self(block)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.0.as_ptr()).finish()
    }
}

/// A stack, for tasks that have one of their own: the address of a [`Link`] in it, which is used
/// only while the stack is free.
#[derive(Debug, PartialEq, Eq)]
pub struct Stack(NonNull<Link>);

// SAFETY: it owns the stack.
unsafe impl Send for Stack {}

impl Stack {
    /// Creates the stack that has its free-list link at `link`.
    ///
    /// # Safety
    ///
    /// The link is alive as long as the stack is with a strategy, and only the strategy uses it
    /// meanwhile.
    #[must_use]
    pub unsafe fn new(link: NonNull<Link>) -> Self {
        Self(link)
    }

    /// Returns the address of its link.
    #[must_use]
    pub fn link(&self) -> NonNull<Link> {
        self.0
    }
}

/// A value with a [`Link`] at its front: a task or a stack.
///
/// # Safety
///
/// `link` is the address of a link that is alive while the value is, and that only chains use; `of`
/// is its inverse.
pub(crate) unsafe trait Linked: Sized {
    fn link(self) -> NonNull<Link>;

    /// # Safety
    ///
    /// `link` is what [`link`](Self::link) returned, and this is its one use.
    unsafe fn of(link: NonNull<Link>) -> Self;
}

// SAFETY: the link is the first field of the block.
unsafe impl Linked for Task {
    #[inline]
    fn link(self) -> NonNull<Link> {
        self.0.cast()
    }

    #[inline]
    unsafe fn of(link: NonNull<Link>) -> Self {
        Self(link.cast())
    }
}

// SAFETY: as `Stack::new` was promised.
unsafe impl Linked for Stack {
    #[inline]
    fn link(self) -> NonNull<Link> {
        self.0
    }

    #[inline]
    unsafe fn of(link: NonNull<Link>) -> Self {
        Self(link)
    }
}

/// A list of tasks or stacks, linked through themselves. It takes at the front, and puts at either
/// end.
///
/// Dropping it loses its values, as dropping a [`Task`] does.
pub(crate) struct Chain<T> {
    first: Option<NonNull<Link>>,
    last: Option<NonNull<Link>>,
    /// The number of values.
    length: usize,
    of: PhantomData<T>,
}

// SAFETY: it owns its values.
unsafe impl<T: Send> Send for Chain<T> {}

impl<T> Chain<T> {
    pub(crate) const fn new() -> Self {
        Self { first: None, last: None, length: 0, of: PhantomData }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Chain<Task> {
    /// Returns the words of the first block. While it is in the chain, they are the chain's.
    #[inline]
    pub(crate) fn front_words(&self) -> Option<NonNull<usize>> {
        let first = self.first?;
        // SAFETY: in the chain; the task does not leave this function.
        Some(unsafe { <Task as Linked>::of(first) }.words())
    }
}

impl<T: Linked> Chain<T> {
    #[inline]
    pub(crate) fn push_front(&mut self, value: T) {
        let link = value.link();
        // SAFETY: the value was the caller's (Invariant 2).
        unsafe { Link::lead(link, self.first) };
        self.first = Some(link);
        self.last = self.last.or(Some(link));
        self.length += 1;
    }

    #[inline]
    pub(crate) fn push_back(&mut self, value: T) {
        let link = value.link();
        // SAFETY: the value was the caller's.
        unsafe { Link::lead(link, None) };
        match self.last {
            // SAFETY: the chain owns its values.
            Some(last) => unsafe { Link::lead(last, Some(link)) },
            None => self.first = Some(link),
        }
        self.last = Some(link);
        self.length += 1;
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = self.first?;
        // SAFETY: in the chain.
        self.first = unsafe { Link::next(first) };
        if self.first.is_none() {
            self.last = None;
        }
        self.length -= 1;
        // SAFETY: out of the chain now.
        Some(unsafe { T::of(first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static_assertions::assert_impl_all!(Task: Send);
    static_assertions::assert_not_impl_any!(Task: Clone, Copy);

    /// Blocks that live as long as the test.
    fn tasks(count: usize) -> (Vec<ControlBlock>, Vec<Task>) {
        let blocks: Vec<_> = (0..count).map(|_| ControlBlock::new()).collect();
        // SAFETY: each is alive and handed out once.
        let tasks = blocks.iter().map(|block| unsafe { Task::of(NonNull::from(block)) });
        let tasks = tasks.collect();
        (blocks, tasks)
    }

    fn drained(mut chain: Chain<Task>) -> Vec<Task> {
        core::iter::from_fn(|| chain.pop_front()).collect()
    }

    #[test]
    fn a_block_is_two_lines_and_a_task_a_word() {
        assert_eq!(size_of::<ControlBlock>(), 128);
        assert_eq!(size_of::<Option<Task>>(), size_of::<usize>());
    }

    #[test]
    fn what_goes_in_at_either_end_comes_out_at_the_front() {
        let (_blocks, tasks) = tasks(3);
        let at: Vec<_> = tasks.iter().map(Task::words).collect();
        let mut chain = Chain::new();
        let mut tasks = tasks.into_iter();
        chain.push_back(tasks.next().unwrap());
        chain.push_front(tasks.next().unwrap());
        chain.push_back(tasks.next().unwrap());
        assert_eq!(chain.len(), 3);
        let out: Vec<_> = drained(chain).iter().map(Task::words).collect();
        assert_eq!(out, [at[1], at[0], at[2]]);
    }
}
