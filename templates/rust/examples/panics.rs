// SPDX-License-Identifier: Apache-2.0
//! A runtime for the tests: panics in the callback that its setting names, for example
//! check.panics:at=step.
#[macro_use]
#[path = "../src/tenon.rs"]
mod tenon;

use tenon::{Options, Result, Runtime, Step};

struct Panics(bool);

fn panic_at(place: &str, options: &Options) -> Result<bool> {
    Ok(options.setting("at")? == Some(place))
}

impl Runtime for Panics {
    fn check_options(options: &Options) -> Result<()> {
        if panic_at("options", options)? {
            panic!("at the options");
        }
        Ok(())
    }
    fn new_session(options: &Options) -> Result<Panics> {
        if panic_at("session", options)? {
            panic!("at the {}", "session");
        }
        Ok(Panics(panic_at("step", options)?))
    }
    fn step(&self, step: &Step) -> Result<()> {
        if self.0 {
            std::panic::panic_any(7);
        }
        step.run()
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("at the end");
    }
}

tenon_plugin! {
    runtime: Panics,
    name: "check.panics",
    version: "1.0.0",
    vendor: "Checks",
    types: "CPU",
    rank: "0",
    entry: panics_LTX_tn_plugin_query,
}
