//! The `leakybins` command. Everything is in [`leakybins::cli`].

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    silence_vulkan_layers();
    let words: Vec<OsString> = std::env::args_os().collect();
    leakybins::cli::run(&words).into()
}

/// Implicit Vulkan layers serve displays; on a headless machine some only print errors. Whoever sets the variable keeps
/// his value.
fn silence_vulkan_layers() {
    const VARIABLE: &str = "VK_LOADER_LAYERS_DISABLE";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var(VARIABLE, "~implicit~") };
    }
}
