//! The models of this twin, in one program: linking each file by itself takes longer.

mod barriers;
mod completion;
mod executor;
mod scheduler;
