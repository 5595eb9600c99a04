//! Every twin of this folder is its crate's source compiled for loom's machine.

fn main() {
    println!("cargo::rustc-cfg=stanchion_loom");
    // What only the real machine has: a twin names it in its sources, and has it not.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"mpi\"))");
    println!("cargo::rerun-if-changed=../build.rs");
}
