//! The models of this twin, in one program: linking each file by itself takes longer.

mod models_of_permits;
mod models_of_seats;
