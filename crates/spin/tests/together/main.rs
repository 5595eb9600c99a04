//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod constructors;
mod lock_api_04;
mod requests;
mod table;
