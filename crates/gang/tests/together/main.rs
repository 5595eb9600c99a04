//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod barriers;
mod co_resident;
mod executor;
mod matrix;
mod table;
