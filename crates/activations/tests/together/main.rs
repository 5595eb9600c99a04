//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod blocking;
mod channels;
mod locals;
mod migrants;
mod order;
mod own_kernel_threads;
mod priorities;
mod processors;
mod scopes;
mod sync;
mod threads;
mod times;
mod tokens;
mod unwinding;
