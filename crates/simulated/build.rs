//! Every twin of this folder is its crate's source compiled for the simulated machine.

fn main() {
    println!("cargo::rustc-cfg=stanchion_simulated");
    // What only the real machine has: a twin names it in its sources, and has it not.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"mpi\"))");
    // Cargo runs a changed script by itself. This keeps it from looking at every file.
    println!("cargo::rerun-if-changed=Cargo.toml");
}
