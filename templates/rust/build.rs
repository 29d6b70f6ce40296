// SPDX-License-Identifier: Apache-2.0
// Undefined functions are reported when the plugin is linked; a program cannot replace the plugin's
// own functions.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs,-z,now,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
