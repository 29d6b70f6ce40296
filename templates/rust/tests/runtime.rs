// SPDX-License-Identifier: Apache-2.0
//! Tests the plugin as built, on an installed Tenon. The command `tenon` is looked up through
//! pkg-config and in PATH; the variable TENON names another.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/model.pbtxt");
const FEED: &str = "x=[[1, 2], [3, -4]]";

fn pkg_config(args: &[&str]) -> String {
    let output = Command::new("pkg-config").args(args).arg("tenon").output().expect("pkg-config");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// The folder where cargo puts the plugin, the example or both: that of this program.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    let examples = built().parent().unwrap().join("examples");
    command.env("TENON_PLUGIN_PATH", format!("{}:{}", built().display(), examples.display()));
    command.env_remove("TENON_LOG");
    command
}

fn tenon(args: &[&str]) -> Command {
    let there = format!("{}/bin/tenon", pkg_config(&["--variable=exec_prefix"]));
    let found = if Path::new(&there).exists() { there } else { "tenon".to_string() };
    let mut command = command(std::env::var("TENON").unwrap_or(found));
    command.args(args);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(runtime: &str, fetch: &str) -> Output {
    tenon(&["run", MODEL, "--runtime", runtime, "--feed", FEED, "--fetch", fetch]).output().expect("tenon")
}

fn must_run(runtime: &str, fetch: &str) -> String {
    let output = run(runtime, fetch);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Refused with a message, as opposed to a crash.
fn must_fail(runtime: &str, words: &str) {
    let output = run(runtime, "y");
    assert!(output.status.code().map_or(false, |code| code > 0), "{}: {:?}", runtime, output.status);
    assert!(text(&output.stderr).contains(words), "{}: {}", runtime, text(&output.stderr));
}

#[test]
fn shows_one_symbol() {
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(built().join("libacme_watch.so")).output().expect("nm");
    assert_eq!(text(&output.stdout).lines().count(), 1, "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains(" acme_watch_LTX_tn_plugin_query"));
}

#[test]
fn is_listed_and_loaded() {
    let listed = text(&tenon(&["runtimes"]).output().unwrap().stdout);
    let line = listed.lines().find(|line| line.starts_with("acme.watch ")).expect(&listed);
    assert!(line.contains(" ready ") && line.contains(" 1.0.0 "), "{}", line);
    let loaded = text(&tenon(&["runtimes", "--load"]).output().unwrap().stdout);
    assert!(loaded.lines().any(|line| line.starts_with("acme.watch ") && line.contains(" loaded ")), "{}", loaded);
}

#[test]
fn gives_what_direct_gives() {
    for fetch in ["y", "chosen", "picked", "text"] {
        assert_eq!(must_run("acme.watch", fetch), must_run("direct", fetch));
    }
}

#[test]
fn runs_in_a_program() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run");
    let rpath = format!("-Wl,-rpath,{}", pkg_config(&["--variable=libdir"]));
    let mut cc = Command::new("cc");
    cc.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/run.c")).arg("-o").arg(&program).arg(rpath);
    cc.args(pkg_config(&["--cflags", "--libs"]).split_whitespace());
    assert!(cc.status().expect("cc").success());
    let on = |runtime| text(&command(&program).args([MODEL, runtime]).output().unwrap().stdout);
    assert_eq!(on("acme.watch"), on("direct"));
    assert_eq!(on("acme.watch").lines().count(), 6);
}

#[test]
fn refuses_settings_with_words() {
    must_fail("acme.watch:slow_ms=never", "setting 'slow_ms' is 'never', wanted milliseconds above 0");
    must_fail("acme.watch:every=0", "setting 'every' is '0', wanted a number of steps above 0");
    must_fail("acme.watch:fast=1", "'fast'");
}

#[test]
fn tells_of_slow_steps() {
    let warned = text(&run("acme.watch:slow_ms=0.000001", "y").stderr);
    assert!(
        warned.contains("warning: acme.watch: step ") && warned.contains("more than slow_ms=0.000001"),
        "{}",
        warned
    );
    assert!(!text(&run("acme.watch:slow_ms=1e9", "y").stderr).contains("acme.watch"));
    let mut counting =
        tenon(&["run", MODEL, "--runtime", "acme.watch:every=2", "--feed", FEED, "--fetch", "y", "--steps", "5"]);
    let told = text(&counting.env("TENON_LOG", "info").output().unwrap().stderr);
    assert!(told.contains("acme.watch: 2 steps, ") && told.contains("acme.watch: 4 steps, "), "{}", told);
    assert!(told.contains("a session ends: 5 steps, "), "{}", told);
}

/// The runtime of examples/panics.rs (P-94).
#[test]
fn panics_end_at_the_callback() {
    must_fail("check.panics:at=options", "panic: at the options");
    must_fail("check.panics:at=session", "panic: at the session");
    must_fail("check.panics:at=step", "panic: without words");
    assert_eq!(must_run("check.panics", "y"), must_run("direct", "y")); // its sessions panic when they are dropped
}
