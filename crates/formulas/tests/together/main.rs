//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod competitive_bounds;
mod competitive_costs;
mod contention_laws;
mod mva_laws;
