//! Control blocks, and what the strategies share of their management.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `control_block.rs` | tasks, stacks, and the chains in which they wait |
//! | `slab.rs` | the memory from which blocks are cut |
//! | `free_list/` | free blocks and free stacks |
//! | `resources.rs` | the free blocks and stacks of most strategies |

pub(crate) mod control_block;
pub(crate) mod free_list;
pub(crate) mod resources;
pub(crate) mod slab;

pub(crate) use self::control_block::{Chain, ControlBlock, Stack, TASK_WORDS, Task};
pub(crate) use self::free_list::{CentralList, FreeBlocks, FreeStacks, LocalStacks};
pub(crate) use self::resources::Resources;
pub(crate) use self::slab::{Cut, Slab, Slabs};
