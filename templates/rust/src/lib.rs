// SPDX-License-Identifier: Apache-2.0
//! Runtime acme.watch: runs plans as the library does (level (a) of the kit) and monitors how long steps take.
//!
//!     acme.watch                  logs each step that takes longer than 100 ms
//!     acme.watch:slow_ms=2.5      longer than 2.5 ms
//!     acme.watch:every=1000       with TENON_LOG=info, logs statistics after each 1000 steps
//!
//! With TENON_LOG=info a session also logs the times of its steps when it ends.
#[macro_use]
pub mod tenon;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tenon::{log, Failure, Options, Result, Runtime, Step, INVALID_ARGUMENT, LOG_INFO, LOG_WARNING};

/// The settings of a target. They may be read often, so this is quick and stores nothing.
struct Settings {
    slow_ms: f64,
    every: u64,
}

impl Settings {
    fn read(options: &Options) -> Result<Settings> {
        options.check_settings(&["slow_ms", "every"])?;
        let slow_ms = match options.setting("slow_ms")? {
            None => 100.0,
            Some(text) => match text.parse::<f64>() {
                Ok(ms) if ms > 0.0 && ms.is_finite() => ms,
                _ => return Err(refused("slow_ms", text, "milliseconds above 0")),
            },
        };
        let every = match options.setting("every")? {
            None => 0,
            Some(text) => match text.parse::<u64>() {
                Ok(n) if n > 0 => n,
                _ => return Err(refused("every", text, "a number of steps above 0")),
            },
        };
        Ok(Settings { slow_ms, every })
    }
}

fn refused(key: &str, found: &str, wanted: &str) -> Failure {
    Failure::new(INVALID_ARGUMENT, format!("setting '{}' is '{}', wanted {}", key, found, wanted))
}

/// The runtime's data for a session. Steps run on several threads at once.
struct Watch {
    settings: Settings,
    steps: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Watch {
    fn figures(&self) -> String {
        let n = self.steps.load(Relaxed);
        let mean = self.total_ns.load(Relaxed) as f64 / n.max(1) as f64;
        let longest = self.longest_ns.load(Relaxed) as f64;
        format!("{} steps, {:.1} us each, {:.1} us the longest", n, mean / 1e3, longest / 1e3)
    }
}

impl Runtime for Watch {
    fn check_options(options: &Options) -> Result<()> {
        Settings::read(options).map(|_| ())
    }

    fn new_session(options: &Options) -> Result<Watch> {
        let (steps, total_ns, longest_ns) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Ok(Watch { settings: Settings::read(options)?, steps, total_ns, longest_ns })
    }

    fn step(&self, step: &Step) -> Result<()> {
        let began = Instant::now();
        let result = step.run();
        let ns = began.elapsed().as_nanos() as u64;
        self.total_ns.fetch_add(ns, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
        let n = self.steps.fetch_add(1, Relaxed) + 1;
        if ns as f64 > self.settings.slow_ms * 1e6 {
            log(LOG_WARNING, || {
                let (ms, limit) = (ns as f64 / 1e6, self.settings.slow_ms);
                format!("acme.watch: step {} took {:.3} ms, more than slow_ms={}", step.id(), ms, limit)
            });
        }
        if self.settings.every != 0 && n % self.settings.every == 0 {
            log(LOG_INFO, || format!("acme.watch: {}", self.figures()));
        }
        result
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        log(LOG_INFO, || format!("acme.watch: a session ends: {}", self.figures()));
    }
}

tenon_plugin! {
    runtime: Watch,
    name: "acme.watch",
    version: env!("CARGO_PKG_VERSION"),
    vendor: "Acme",
    types: "CPU",
    rank: "0",
    entry: acme_watch_LTX_tn_plugin_query,
}
