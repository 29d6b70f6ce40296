// SPDX-License-Identifier: Apache-2.0
//! Reusable parts of a runtime in Rust: the structs of <tenon/runtime.h> that a plugin fills in,
//! the functions of the library by name, and callbacks that no panic leaves. tests/abi.rs compares
//! the structs with the installed header.
//!
//! To use another function, add a line to `functions!` with the signature of its header.
#![allow(dead_code)]

use std::ffi::{c_void, CStr, CString};
use std::fmt::Display;
use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

// ---- <tenon/types.h>, <tenon/status.h>, <tenon/process.h> ----

pub type Status = i32;
pub const OK: Status = 0;
pub const INVALID_ARGUMENT: Status = 3;
pub const RESOURCE_EXHAUSTED: Status = 8;
pub const UNIMPLEMENTED: Status = 12;
pub const INTERNAL: Status = 13;
pub const UNAVAILABLE: Status = 14;

pub const LOG_ERROR: i32 = 0;
pub const LOG_WARNING: i32 = 1;
pub const LOG_INFO: i32 = 2;
pub const LOG_DEBUG: i32 = 3;

pub const ABI_MAJOR: i32 = 0;
pub const ABI_MINOR: i32 = 1;
/// The ABI version as text, for the manifest.
#[macro_export]
macro_rules! tenon_abi {
    () => {
        "0.1"
    };
}

/// Types of the library that a plugin only handles by address.
macro_rules! opaque {
    ($($name:ident)*) => { $( #[repr(C)] pub struct $name { _private: [u8; 0] } )* };
}
opaque! { RawError RawOptions RawSession RawExecutable RawPlan RawStep RawDevice }

// ---- <tenon/host.h>: the head of the table, which does not change ----

#[repr(C)]
pub struct Host {
    pub struct_size: usize,
    pub abi_major: i32,
    pub abi_minor: i32,
    pub plugin: *mut c_void, // `self` in C
    pub get_extension: unsafe extern "C" fn(name: *const c_char, version: u32) -> *const c_void,
}

macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        pub struct Functions { $( pub $name: $type, )* }
        impl Functions {
            /// Returns the name of the first missing function if this library lacks one.
            unsafe fn find(host: *const Host) -> std::result::Result<Functions, &'static str> {
                Ok(Functions { $( $name: {
                    let name = concat!(stringify!($name), "\0").as_ptr() as *const c_char;
                    let at = ((*host).get_extension)(name, 1);
                    if at.is_null() {
                        return Err(stringify!($name));
                    }
                    std::mem::transmute::<*const c_void, $type>(at)
                }, )* })
            }
        }
    };
}
functions! {
    tn_error_set: unsafe extern "C" fn(*mut RawError, Status, *const c_char, ...) -> Status;
    tn_log: unsafe extern "C" fn(i32, *const c_char, ...);
    tn_log_enabled: unsafe extern "C" fn(i32) -> u8;
    tn_session_options_setting: unsafe extern "C" fn(*const RawOptions, *const c_char) -> *const c_char;
    tn_session_options_check_settings:
        unsafe extern "C" fn(*const RawOptions, *const *const c_char, usize, *mut RawError) -> Status;
    tn_session_options_get_int:
        unsafe extern "C" fn(*const RawOptions, *const c_char, *mut i64, *mut RawError) -> Status;
    tn_step_id: unsafe extern "C" fn(*const RawStep) -> u64;
    tn_step_cancelled: unsafe extern "C" fn(*const RawStep) -> u8;
    tn_kit_step: unsafe extern "C" fn(*mut RawExecutable, *mut RawStep, *mut RawError) -> Status;
    tn_kit_reset: unsafe extern "C" fn(*const Factory, *const *const c_char, usize, u32, *mut RawError) -> Status;
}

static FUNCTIONS: AtomicPtr<Functions> = AtomicPtr::new(ptr::null_mut());

/// The library's functions; valid after the entry point was called.
pub fn library() -> &'static Functions {
    unsafe { &*FUNCTIONS.load(Ordering::Acquire) }
}

// ---- errors and the log ----

/// Why a callback failed. Without a text, the library has already set the error.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    text: Option<String>,
}
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(status: Status, text: impl Display) -> Failure {
        Failure { status, text: Some(text.to_string()) }
    }
}

fn told(status: Status) -> Result<()> {
    if status == OK {
        Ok(())
    } else {
        Err(Failure { status, text: None })
    }
}

/// A C string from a text, up to its first NUL.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// Runs the work of a callback; turns an error or a panic into a status with a text (P-94).
fn guarded(err: *mut RawError, work: impl FnOnce() -> Result<()>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            let failure = Failure::new(INTERNAL, format!("panic: {}", words.unwrap_or("without words")));
            std::mem::forget(panic); // dropping it may panic again
            failure
        }
    };
    if let Some(text) = failure.text {
        unsafe {
            (library().tn_error_set)(err, failure.status, "%s\0".as_ptr() as *const c_char, c_text(&text).as_ptr())
        };
    }
    failure.status
}

/// Writes a line to the log; `text` is only called if the line is shown.
pub fn log(level: i32, text: impl FnOnce() -> String) {
    unsafe {
        if (library().tn_log_enabled)(level) != 0 {
            (library().tn_log)(level, "%s\0".as_ptr() as *const c_char, c_text(&text()).as_ptr());
        }
    }
}

// ---- arguments of callbacks ----

/// The options of a session, during a callback.
pub struct Options {
    raw: *const RawOptions,
    err: *mut RawError,
}

impl Options {
    /// The setting `key` of the target, for example "250" in "acme.watch:slow_ms=250".
    pub fn setting(&self, key: &str) -> Result<Option<&str>> {
        let value = unsafe { (library().tn_session_options_setting)(self.raw, c_text(key).as_ptr()) };
        if value.is_null() {
            return Ok(None);
        }
        let text = unsafe { CStr::from_ptr(value) }.to_str();
        text.map(Some).map_err(|_| Failure::new(INVALID_ARGUMENT, format!("setting '{}' is not UTF-8", key)))
    }

    /// Rejects settings that are not among these.
    pub fn check_settings(&self, keys: &[&str]) -> Result<()> {
        let texts: Vec<CString> = keys.iter().map(|key| c_text(key)).collect();
        let keys: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        told(unsafe { (library().tn_session_options_check_settings)(self.raw, keys.as_ptr(), keys.len(), self.err) })
    }

    /// An option of the session by its name in <tenon/options.h>, for example "intra_op_threads".
    pub fn get_int(&self, field: &str) -> Result<i64> {
        let mut value = 0;
        told(unsafe {
            (library().tn_session_options_get_int)(self.raw, c_text(field).as_ptr(), &mut value, self.err)
        })?;
        Ok(value)
    }
}

/// A step to run.
pub struct Step {
    executable: *mut RawExecutable,
    raw: *mut RawStep,
    err: *mut RawError,
}

impl Step {
    pub fn id(&self) -> u64 {
        unsafe { (library().tn_step_id)(self.raw) }
    }
    pub fn is_cancelled(&self) -> bool {
        unsafe { (library().tn_step_cancelled)(self.raw) != 0 }
    }
    /// Level (a) of the kit: the library runs the plan, on this thread.
    pub fn run(&self) -> Result<()> {
        told(unsafe { (library().tn_kit_step)(self.executable, self.raw, self.err) })
    }
}

/// The interface that an author implements. Several threads use a session at once.
pub trait Runtime: Sized + Send + Sync {
    /// Returns an error if the options are wrong; stores nothing.
    fn check_options(options: &Options) -> Result<()>;
    fn new_session(options: &Options) -> Result<Self>;
    fn step(&self, step: &Step) -> Result<()> {
        step.run()
    }
}

// ---- <tenon/runtime.h> ----

type Prepare = unsafe extern "C" fn(
    *const Factory,
    *mut RawSession,
    *const RawPlan,
    *mut *mut RawExecutable,
    *mut RawError,
) -> Status;

#[repr(C)]
pub struct Factory {
    pub struct_size: usize,
    pub name: *const c_char,
    pub user: *mut c_void,
    pub new_session:
        unsafe extern "C" fn(*const Factory, *const RawOptions, *mut *mut RawSession, *mut RawError) -> Status,
    pub accepts_options: unsafe extern "C" fn(*const Factory, *const RawOptions) -> u8,
    pub destroy_session: unsafe extern "C" fn(*const Factory, *mut RawSession),
    pub prepare: Option<Prepare>,
    pub release: Option<unsafe extern "C" fn(*const Factory, *mut RawSession, *mut RawExecutable)>,
    pub step: Option<
        unsafe extern "C" fn(
            *const Factory,
            *mut RawSession,
            *mut RawExecutable,
            *mut RawStep,
            *mut RawError,
        ) -> Status,
    >,
    pub cancel: Option<unsafe extern "C" fn(*const Factory, *mut RawSession, *mut RawStep)>,
    pub list_devices:
        Option<unsafe extern "C" fn(*const Factory, *mut RawSession, usize, *mut RawDevice, *mut RawError) -> Status>,
    pub reset: Option<
        unsafe extern "C" fn(
            *const Factory,
            *const RawOptions,
            *const *const c_char,
            usize,
            u32,
            *mut RawError,
        ) -> Status,
    >,
    pub explain_options: Option<unsafe extern "C" fn(*const Factory, *const RawOptions, *mut RawError)>,
    pub rank_for_options: Option<unsafe extern "C" fn(*const Factory, *const RawOptions, i32) -> i32>,
    pub health: Option<unsafe extern "C" fn(*const Factory, *mut RawError) -> Status>,
}

#[repr(C)]
pub struct Plugin {
    pub struct_size: usize,
    pub abi_major: i32,
    pub abi_minor: i32,
    pub kind: i32,
    pub reserved: i32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub types: *const c_char,
    pub manifest: *const c_char,
    pub factories: *const *const Factory,
    pub n_factories: usize,
    pub init: Option<unsafe extern "C" fn(*mut RawError) -> Status>,
    pub shutdown: Option<unsafe extern "C" fn(*mut RawError) -> Status>,
    pub register_kernels: Option<unsafe extern "C" fn(*mut RawError) -> Status>,
}

/// Constant data shared by threads.
pub struct Shared<T>(pub T);
unsafe impl<T> Sync for Shared<T> {}

unsafe extern "C" fn new_session<R: Runtime>(
    _: *const Factory,
    options: *const RawOptions,
    out: *mut *mut RawSession,
    err: *mut RawError,
) -> Status {
    *out = ptr::null_mut();
    guarded(err, || {
        let options = Options { raw: options, err };
        R::check_options(&options)?;
        *out = Box::into_raw(Box::new(R::new_session(&options)?)) as *mut RawSession;
        Ok(())
    })
}

unsafe extern "C" fn accepts_options<R: Runtime>(_: *const Factory, options: *const RawOptions) -> u8 {
    let err = ptr::null_mut();
    (guarded(err, || R::check_options(&Options { raw: options, err })) == OK) as u8
}

unsafe extern "C" fn explain_options<R: Runtime>(_: *const Factory, options: *const RawOptions, err: *mut RawError) {
    guarded(err, || R::check_options(&Options { raw: options, err }));
}

unsafe extern "C" fn destroy_session<R: Runtime>(_: *const Factory, session: *mut RawSession) {
    guarded(ptr::null_mut(), || {
        drop(Box::from_raw(session as *mut R));
        Ok(())
    });
}

unsafe extern "C" fn step<R: Runtime>(
    _: *const Factory,
    session: *mut RawSession,
    executable: *mut RawExecutable,
    raw: *mut RawStep,
    err: *mut RawError,
) -> Status {
    guarded(err, || (*(session as *const R)).step(&Step { executable, raw, err }))
}

unsafe extern "C" fn reset(
    factory: *const Factory,
    _: *const RawOptions,
    containers: *const *const c_char,
    n: usize,
    flags: u32,
    err: *mut RawError,
) -> Status {
    (library().tn_kit_reset)(factory, containers, n, flags, err)
}

pub const fn factory<R: Runtime>(name: *const c_char) -> Factory {
    Factory {
        struct_size: std::mem::size_of::<Factory>(),
        name,
        user: ptr::null_mut(),
        new_session: new_session::<R>,
        accepts_options: accepts_options::<R>,
        destroy_session: destroy_session::<R>,
        prepare: None, // default: the kit's
        release: None,
        step: Some(step::<R>),
        cancel: None,
        list_devices: None,
        reset: Some(reset),
        explain_options: Some(explain_options::<R>),
        rank_for_options: None,
        health: None,
    }
}

/// A text as the content of a section.
pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let from = text.as_bytes();
    let mut to = [0; N];
    let mut i = 0;
    while i < N {
        to[i] = from[i];
        i += 1;
    }
    to
}

/// # Safety
/// `host` and `err` are the arguments of the entry point.
pub unsafe fn enter(host: *const Host, err: *mut RawError, plugin: &'static Plugin) -> *const Plugin {
    match Functions::find(host) {
        Ok(functions) => {
            FUNCTIONS.store(Box::into_raw(Box::new(functions)), Ordering::Release);
            plugin
        }
        Err(missing) => {
            let error_set = ((*host).get_extension)("tn_error_set\0".as_ptr() as *const c_char, 1);
            if !error_set.is_null() {
                let error_set: unsafe extern "C" fn(*mut RawError, Status, *const c_char, ...) -> Status =
                    std::mem::transmute(error_set);
                let format = "this library has no function %s\0".as_ptr() as *const c_char;
                error_set(err, UNIMPLEMENTED, format, c_text(missing).as_ptr());
            }
            ptr::null()
        }
    }
}

/// Defines the manifest, which is read from the file without running its code, and the entry point,
/// the only symbol of the file.
#[macro_export]
macro_rules! tenon_plugin {
    (runtime: $runtime:ty, name: $name:literal, version: $version:expr, vendor: $vendor:literal, types: $types:literal,
     rank: $rank:literal, entry: $entry:ident $(,)?) => {
        const MANIFEST_TEXT: &str = concat!(
            "format=1\0kind=runtime\0name=",
            $name,
            "\0types=",
            $types,
            "\0rank=",
            $rank,
            "\0version=",
            $version,
            "\0vendor=",
            $vendor,
            "\0flags=\0kernels=\0abi=",
            $crate::tenon_abi!(),
            "\0min_host=",
            $crate::tenon_abi!(),
            "\0entry=",
            stringify!($entry),
            "\0"
        );
        #[used]
        #[link_section = ".tenon.manifest"]
        static MANIFEST: [u8; MANIFEST_TEXT.len()] = tenon::bytes(MANIFEST_TEXT);

        static FACTORY: tenon::Shared<tenon::Factory> =
            tenon::Shared(tenon::factory::<$runtime>(concat!($name, "\0").as_ptr() as *const _));
        static FACTORIES: tenon::Shared<[*const tenon::Factory; 1]> =
            tenon::Shared([&FACTORY.0 as *const tenon::Factory]);
        static PLUGIN: tenon::Shared<tenon::Plugin> = tenon::Shared(tenon::Plugin {
            struct_size: std::mem::size_of::<tenon::Plugin>(),
            abi_major: tenon::ABI_MAJOR,
            abi_minor: tenon::ABI_MINOR,
            kind: 1, // TN_PLUGIN_RUNTIME
            reserved: 0,
            name: concat!($name, "\0").as_ptr() as *const _,
            version: concat!($version, "\0").as_ptr() as *const _,
            types: concat!($types, "\0").as_ptr() as *const _,
            manifest: &MANIFEST as *const u8 as *const _,
            factories: &FACTORIES.0 as *const *const tenon::Factory,
            n_factories: 1,
            init: None,
            shutdown: None,
            register_kernels: None,
        });

        /// # Safety
        /// Only the library calls it.
        #[no_mangle]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $entry(host: *const tenon::Host, err: *mut tenon::RawError) -> *const tenon::Plugin {
            tenon::enter(host, err, &PLUGIN.0)
        }
    };
}
