// SPDX-License-Identifier: Apache-2.0
//! The structs of src/tenon.rs match those of the installed header: a C program prints the offsets
//! of their fields.
use acme_watch::tenon::{Factory, Host, Plugin, ABI_MAJOR, ABI_MINOR};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::Command;

/// (name in C, offset here) of each field.
macro_rules! fields {
    ($c:literal, $type:ty: $($field:ident)*) => {{
        let object = MaybeUninit::<$type>::uninit();
        let base = object.as_ptr();
        vec![$( (
            format!("offsetof({}, {})", $c, stringify!($field)),
            unsafe { std::ptr::addr_of!((*base).$field) as usize - base as usize },
        ) ),*]
    }};
}

#[test]
fn structs_are_those_of_the_header() {
    let mut rows = fields!("tn_session_factory", Factory: struct_size name user new_session accepts_options
        destroy_session prepare release step cancel list_devices reset explain_options rank_for_options health);
    rows.extend(fields!("tn_plugin", Plugin: struct_size abi_major abi_minor kind reserved name version types manifest
        factories n_factories init shutdown register_kernels));
    rows.extend(fields!("tn_host", Host: struct_size abi_major abi_minor get_extension));
    rows.push(("offsetof(tn_host, self)".into(), 16));
    rows.push(("TN_SIZE_TO(tn_session_factory, health)".into(), std::mem::size_of::<Factory>()));
    rows.push(("TN_PLUGIN_SIZE".into(), std::mem::size_of::<Plugin>()));
    rows.push(("TN_ABI_MAJOR".into(), ABI_MAJOR as usize));
    let prints: String = rows.iter().map(|(c, _)| format!("  printf(\"%zu\\n\", (size_t)({}));\n", c)).collect();
    let code = format!(
        "#include <stdio.h>\n#include <tenon/runtime.h>\nint main(void)\n{{\n{}  return TN_ABI_MINOR < {};\n}}\n",
        prints, ABI_MINOR
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("abi.c"), folder.join("abi"));
    std::fs::write(&source, code).unwrap();
    let flags = Command::new("pkg-config").args(["--cflags", "tenon"]).output().expect("pkg-config");
    assert!(flags.status.success(), "pkg-config does not know tenon: {}", String::from_utf8_lossy(&flags.stderr));
    let flags = String::from_utf8(flags.stdout).unwrap();
    let built = Command::new("cc")
        .args(flags.split_whitespace())
        .arg("-DTN_PLUGIN=abi")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(built.expect("cc").success());
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success(), "the installed headers are older than ABI {}.{}", ABI_MAJOR, ABI_MINOR);
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(found.lines().count(), rows.len());
    for ((what, here), there) in rows.iter().zip(found.lines()) {
        assert_eq!(here.to_string(), there, "{}", what);
    }
}
