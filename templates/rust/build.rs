// SPDX-License-Identifier: Apache-2.0
// A function that nobody has is found when the plugin is linked; its own are not replaced by those of a program.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs,-z,now,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
