//! Every twin of this folder is its crate's source compiled for loom's machine.

fn main() {
    println!("cargo::rustc-cfg=stanchion_loom");
    println!("cargo::rerun-if-changed=../build.rs");
}
