//! The `leakybins` command: parse, run, exit code. Everything else is in [`leakybins::cli`].

use clap::Parser;
use leakybins::cli::{Cli, exit};
use std::process::ExitCode;

fn main() -> ExitCode {
    silence_vulkan_layers();
    // A refused command line leaves here with exit code 2, --help and --version with 0.
    let cli = Cli::parse();
    cli.run().unwrap_or_else(|error| exit::explain(&error)).into()
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
