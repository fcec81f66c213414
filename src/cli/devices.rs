//! `leakybins devices`: what adapters there are.

use super::exit::Exit;
use super::{Format, INSTALL_DRIVER, pretty, print};
use crate::backend::gpu::{AdapterKind, AdapterSummary, adapters};

/// Arguments of `leakybins devices`.
#[derive(Debug, clap::Args)]
pub(super) struct DevicesArgs {
    /// Form of the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Lists the adapters.
pub(super) fn run(arguments: &DevicesArgs) -> anyhow::Result<Exit> {
    let adapters = adapters();
    let text = match arguments.format {
        Format::Table => adapters.iter().map(describe).collect::<Vec<_>>().join("\n"),
        Format::Json => pretty(&adapters)?,
    };
    print(text.as_bytes())?;
    if adapters.is_empty() {
        tracing::info!("no adapter found; {INSTALL_DRIVER}; `leakybins doctor` says more");
    } else if adapters.iter().all(|a| a.kind == AdapterKind::Software) {
        tracing::info!(
            "software adapters only: used with --allow-software, slower than --backend cpu; {INSTALL_DRIVER}"
        );
    }
    Ok(Exit::Done)
}

/// An adapter in three lines.
fn describe(adapter: &AdapterSummary) -> String {
    let kind = match adapter.kind {
        AdapterKind::Discrete => "discrete GPU",
        AdapterKind::Integrated => "integrated GPU",
        AdapterKind::Virtual => "virtual GPU",
        AdapterKind::Software => "software, no GPU",
        AdapterKind::Other => "unknown kind",
    };
    let driver: Vec<&str> =
        [&*adapter.driver, &*adapter.driver_info].into_iter().filter(|text| !text.is_empty()).collect();
    let pci = if adapter.pci_address.is_empty() { "no PCI address" } else { &adapter.pci_address };
    format!(
        "{}: {} ({kind})\n   {}, driver {}, {pci}\n   {} of workgroup memory, {} threads a workgroup, buffers to {}, {} \
         a binding, 64-bit integers: {}\n",
        adapter.index,
        adapter.name,
        adapter.backend,
        if driver.is_empty() { "unknown".to_owned() } else { driver.join(" ") },
        bytes(adapter.max_workgroup_storage.into()),
        adapter.max_invocations,
        bytes(adapter.max_buffer),
        bytes(adapter.max_storage_binding),
        if adapter.int64 { "yes" } else { "no" },
    )
}

/// Bytes in binary units, rounded down to the unit.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (count.checked_ilog2().unwrap_or(0) / 10) as usize;
    format!("{} {}", count >> (10 * unit), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_down() {
        let texts = [0, 1023, 32 << 10, (4 << 30) - 1, 4 << 30, u64::MAX].map(bytes);
        assert_eq!(texts, ["0 B", "1023 B", "32 KiB", "3 GiB", "4 GiB", "15 EiB"]);
    }
}
