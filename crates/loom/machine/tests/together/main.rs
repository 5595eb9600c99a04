//! The models of this twin, in one program: linking each file by itself takes longer.

mod apart;
mod asymmetric;
mod handshake;
mod interrupts;
mod looks;
mod machine;
mod made_by_new;
mod modes;
mod park;
mod reliance;
mod stacks;
mod watch;
