//! Every twin of this folder is its crate's source compiled for the simulated machine.

fn main() {
    println!("cargo::rustc-cfg=stanchion_simulated");
    println!("cargo::rerun-if-changed=../build.rs");
}
