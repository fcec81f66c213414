//! Which adapters there are, how one is chosen, and an opened one whose errors are values.

use crate::backend::BackendError;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use wgpu::DeviceType;

/// What an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the memory of the CPU.
    Integrated,
    /// A GPU behind a hypervisor.
    Virtual,
    /// Not told by the driver.
    Other,
    /// The CPU in the guise of a GPU, such as Mesa's llvmpipe: for tests, never for speed.
    Software,
}

impl From<DeviceType> for AdapterKind {
    fn from(kind: DeviceType) -> Self {
        match kind {
            DeviceType::DiscreteGpu => AdapterKind::Discrete,
            DeviceType::IntegratedGpu => AdapterKind::Integrated,
            DeviceType::VirtualGpu => AdapterKind::Virtual,
            DeviceType::Cpu => AdapterKind::Software,
            DeviceType::Other => AdapterKind::Other,
        }
    }
}

/// An adapter as a person or a program chooses one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdapterSummary {
    /// Position in [`adapters`].
    pub index: usize,
    /// The driver's name of it.
    pub name: String,
    /// What it is.
    pub kind: AdapterKind,
    /// The interface it is reached through: vulkan, metal or dx12.
    pub backend: String,
    /// Name of the driver.
    pub driver: String,
    /// Version of the driver.
    pub driver_info: String,
    /// PCI address such as `0000:01:00.0`; empty where the driver does not tell.
    pub pci_address: String,
    /// PCI or Khronos number of the vendor.
    pub vendor: u32,
    /// The vendor's number of the device.
    pub device: u32,
    /// Whether shaders may use 64-bit integers.
    pub int64: bool,
    /// Whether the GPU can time itself.
    pub timestamp: bool,
    /// Most bytes of workgroup memory that a workgroup may use.
    pub max_workgroup_storage: u32,
    /// Most threads of a workgroup.
    pub max_invocations: u32,
    /// Most bytes of a buffer that a shader sees at once.
    pub max_storage_binding: u64,
    /// Most bytes of a buffer.
    pub max_buffer: u64,
}

impl AdapterSummary {
    fn new(index: usize, adapter: &wgpu::Adapter) -> Self {
        let (info, limits, features) = (adapter.get_info(), adapter.limits(), adapter.features());
        Self {
            index,
            name: info.name,
            kind: info.device_type.into(),
            backend: info.backend.to_string(),
            driver: info.driver,
            driver_info: info.driver_info,
            pci_address: info.device_pci_bus_id,
            vendor: info.vendor,
            device: info.device,
            int64: features.contains(wgpu::Features::SHADER_INT64),
            timestamp: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            max_workgroup_storage: limits.max_compute_workgroup_storage_size,
            max_invocations: limits.max_compute_invocations_per_workgroup,
            max_storage_binding: limits.max_storage_buffer_binding_size,
            max_buffer: limits.max_buffer_size,
        }
    }
}

/// The adapters of this machine, in the order of their indices; none where there is no usable driver.
#[must_use]
pub fn adapters() -> Vec<AdapterSummary> {
    enumerate().iter().enumerate().map(|(index, adapter)| AdapterSummary::new(index, adapter)).collect()
}

impl fmt::Display for AdapterSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = format!("{:?}", self.kind).to_lowercase();
        write!(f, "{} ({kind}, {}, {} {})", self.name, self.backend, self.driver, self.driver_info)
    }
}

fn enumerate() -> Vec<wgpu::Adapter> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
    let instance = wgpu::Instance::new(descriptor);
    pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY))
}

/// An adapter that was chosen.
pub(super) struct Chosen {
    adapter: wgpu::Adapter,
    summary: AdapterSummary,
}

/// All adapters of this machine.
fn present() -> Vec<Chosen> {
    let summarised = |(index, adapter)| Chosen { summary: AdapterSummary::new(index, &adapter), adapter };
    enumerate().into_iter().enumerate().map(summarised).collect()
}

/// The adapters that fit `gpu`, at least one: `all`, or with commas between several index, part of the name or
/// `pci:ADDRESS`; the best one where nothing is said.
pub(super) fn chosen(gpu: Option<&str>, allow_software: bool) -> Result<Vec<Chosen>, BackendError> {
    let mut present: Vec<Option<Chosen>> = present().into_iter().map(Some).collect();
    let summaries: Vec<_> = present.iter().flatten().map(|chosen| chosen.summary.clone()).collect();
    let indices = choose(&summaries, gpu, allow_software)?;
    Ok(indices.into_iter().filter_map(|index| present[index].take()).collect())
}

/// The adapter that `lost` was, so that no other is taken in its place.
pub(super) fn again(lost: &AdapterSummary) -> Result<Chosen, BackendError> {
    let place = |a: &AdapterSummary| if a.pci_address.is_empty() { a.index.to_string() } else { a.pci_address.clone() };
    let is_it = |a: &AdapterSummary| (&a.name, &a.backend, place(a)) == (&lost.name, &lost.backend, place(lost));
    let found = present().into_iter().find(|chosen| is_it(&chosen.summary));
    found.ok_or_else(|| BackendError::NoAdapter(format!("{lost} is gone")))
}

/// Positions of the adapters that fit, each once.
fn choose(adapters: &[AdapterSummary], gpu: Option<&str>, allow_software: bool) -> Result<Vec<usize>, BackendError> {
    let Some(gpu) = gpu.map(str::trim) else { return Ok(vec![choose_one(adapters, None, allow_software)?]) };
    if gpu == "all" {
        // The interface of the best one, so that no adapter is there twice under two of them.
        let interface = &adapters[choose_one(adapters, None, allow_software)?].backend;
        let is_wanted =
            |a: &&AdapterSummary| a.backend == *interface && (allow_software || a.kind != AdapterKind::Software);
        return Ok(adapters.iter().filter(is_wanted).map(|a| a.index).collect());
    }
    let mut indices = Vec::new();
    for selector in gpu.split(',') {
        let index = choose_one(adapters, Some(selector.trim()), allow_software)?;
        if !indices.contains(&index) {
            indices.push(index);
        }
    }
    Ok(indices)
}

/// Position of the adapter that fits: discrete before integrated, virtual, other; a software adapter only where it is
/// named or allowed.
fn choose_one(adapters: &[AdapterSummary], wanted: Option<&str>, allow_software: bool) -> Result<usize, BackendError> {
    let fits = |a: &&AdapterSummary| match wanted {
        None => true,
        // Nothing at all, as from an unset variable of a script, is no part of every name.
        Some("" | "pci:") => false,
        Some(w) => match (w.parse::<usize>(), w.strip_prefix("pci:")) {
            (Ok(index), _) => a.index == index,
            (_, Some(address)) => a.pci_address.eq_ignore_ascii_case(address),
            _ => a.name.to_lowercase().contains(&w.to_lowercase()),
        },
    };
    let by_name = wanted.is_some_and(|w| w.parse::<usize>().is_err() && !w.starts_with("pci:"));
    let may = |a: &&AdapterSummary| a.kind != AdapterKind::Software || allow_software || by_name;
    if let Some(best) = adapters.iter().filter(fits).filter(may).min_by_key(|a| a.kind) {
        return Ok(best.index);
    }
    let asked = wanted.map_or_else(|| "no GPU was found".to_owned(), |w| format!("no adapter fits '{w}'"));
    let list: Vec<String> = adapters.iter().map(|a| format!("{}: {a}", a.index)).collect();
    let what_there_is = if list.is_empty() { "there is no adapter at all".to_owned() } else { list.join("; ") };
    let remedy = match (wanted, adapters) {
        (_, []) => "install the driver of the GPU (Vulkan, Metal or DX12), or use --backend cpu",
        // Whatever there is, is software, or it would have been chosen.
        (None, _) => {
            "install the driver of the GPU (Vulkan, Metal or DX12), use --backend cpu, or accept a software adapter with \
             --allow-software"
        }
        (Some(_), _) => {
            "give an index, part of a name or pci:ADDRESS, several with commas, or all; a software adapter is taken by its \
             name, or with --allow-software"
        }
    };
    Err(BackendError::NoAdapter(format!("{asked} ({what_there_is}); {remedy}")))
}

/// A device with its queue. What goes wrong on it is kept here and told by [`Device::check`], never a panic.
pub(super) struct Device {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) summary: AdapterSummary,
    pub(super) features: wgpu::Features,
    errors: Arc<Mutex<Vec<String>>>,
    lost: Arc<Mutex<Option<String>>>,
}

impl Device {
    /// Opens an adapter.
    pub(super) fn open(chosen: Chosen) -> Result<Self, BackendError> {
        let Chosen { adapter, summary } = chosen;
        let features = adapter.features() & (wgpu::Features::SHADER_INT64 | wgpu::Features::SUBGROUP);
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("leakybins"),
            required_features: features,
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        }))
        .map_err(|e| BackendError::Device(format!("{summary} could not be opened ({e})")))?;
        let (errors, lost) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None)));
        let sink = Arc::clone(&errors);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| lock(&sink).push(error.to_string())));
        let sink = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            *lock(&sink) = Some(format!("{reason:?}: {message}"));
        });
        Ok(Self { device, queue, summary, features, errors, lost })
    }

    /// Whether the driver is llvmpipe or the like.
    pub(super) fn is_software(&self) -> bool {
        self.summary.kind == AdapterKind::Software
    }

    /// Tells the loss of the device, or the first error on it since the last check.
    pub(super) fn check(&self) -> Result<(), BackendError> {
        if let Some(reason) = self.loss() {
            return Err(BackendError::Lost(reason));
        }
        match lock(&self.errors).drain(..).next() {
            Some(error) => Err(BackendError::Device(format!("the GPU reports: {error}"))),
            None => Ok(()),
        }
    }

    /// Why the device was lost, if it was.
    pub(super) fn loss(&self) -> Option<String> {
        lock(&self.lost).clone()
    }

    /// Waits until `submission` is done and its callbacks have run.
    pub(super) fn wait(&self, submission: &wgpu::SubmissionIndex) -> Result<(), BackendError> {
        let poll = wgpu::PollType::Wait { submission_index: Some(submission.clone()), timeout: None };
        let waited = self.device.poll(poll);
        self.check()?;
        waited.map(|_| ()).map_err(|e| BackendError::Device(format!("waiting for the GPU failed ({e})")))
    }

    /// Creates something; `what` names it where that fails.
    pub(super) fn create<T>(&self, what: &str, make: impl FnOnce(&wgpu::Device) -> T) -> Result<T, BackendError> {
        let filters = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let made = make(&self.device);
        let errors: Vec<String> =
            scopes.into_iter().rev().filter_map(|s| pollster::block_on(s.pop())).map(|e| e.to_string()).collect();
        self.check()?;
        match errors.first() {
            Some(error) => Err(BackendError::Device(format!("the GPU cannot make {what}: {error}"))),
            None => Ok(made),
        }
    }

    /// A buffer of `bytes` bytes.
    pub(super) fn buffer(
        &self,
        what: &'static str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, BackendError> {
        let descriptor = wgpu::BufferDescriptor { label: Some(what), size: bytes, usage, mapped_at_creation: false };
        self.create(what, |device| device.create_buffer(&descriptor))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(index: usize, name: &str, kind: AdapterKind, pci: &str) -> AdapterSummary {
        AdapterSummary {
            index,
            name: name.into(),
            kind,
            backend: "vulkan".into(),
            driver: "driver".into(),
            driver_info: "1".into(),
            pci_address: pci.into(),
            vendor: 0,
            device: 0,
            int64: true,
            timestamp: true,
            max_workgroup_storage: 0,
            max_invocations: 0,
            max_storage_binding: 0,
            max_buffer: 0,
        }
    }

    #[test]
    fn the_adapter_that_fits_is_chosen() {
        use AdapterKind::{Discrete, Integrated, Software};
        let all = [
            adapter(0, "llvmpipe 15.0.6", Software, ""),
            adapter(1, "Small 10", Integrated, "0000:00:02.0"),
            adapter(2, "Big 20", Discrete, "0000:01:00.0"),
            adapter(3, "Big 20", Discrete, "0000:02:00.0"),
        ];
        for (gpu, allow, index) in [
            (None, false, Some(2)),
            (None, true, Some(2)),
            (Some("small"), false, Some(1)),
            (Some("BIG"), false, Some(2)),
            (Some("3"), false, Some(3)),
            (Some("pci:0000:02:00.0"), false, Some(3)),
            (Some("llvm"), false, Some(0)),
            (Some("0"), false, None),
            (Some("0"), true, Some(0)),
            (Some("7"), true, None),
            (Some("other"), true, None),
            (Some(""), true, None),
            (Some(" "), false, None),
            (Some("pci:"), true, None),
        ] {
            assert_eq!(choose(&all, gpu, allow).ok(), index.map(|index| vec![index]), "{gpu:?} {allow}");
        }
        assert!(choose(&all[..1], None, false).is_err(), "a software adapter is not taken by itself");
        assert_eq!(choose(&all[..1], None, true).ok(), Some(vec![0]));
    }

    #[test]
    fn several_adapters_are_chosen_each_once() {
        use AdapterKind::{Discrete, Software};
        let mut all = [
            adapter(0, "llvmpipe (LLVM 15.0.6, 256 bits)", Software, ""),
            adapter(1, "Big 20", Discrete, "0000:01:00.0"),
            adapter(2, "Big 20", Discrete, "0000:02:00.0"),
            adapter(3, "Big 20", Discrete, "0000:01:00.0"),
        ];
        all[3].backend = "dx12".to_owned();
        for (gpu, allow, indices) in [
            ("1,2", false, Some(vec![1, 2])),
            (" 2 , 1", false, Some(vec![2, 1])),
            ("2,pci:0000:02:00.0,2", false, Some(vec![2])),
            ("1,7", false, None),
            ("1,", false, None),
            ("0,1", false, None),
            ("0,1", true, Some(vec![0, 1])),
            ("all", false, Some(vec![1, 2])),
            ("all", true, Some(vec![0, 1, 2])),
            // A whole name, with its comma.
            (all[0].name.clone().as_str(), false, Some(vec![0])),
        ] {
            assert_eq!(choose(&all, Some(gpu), allow).ok(), indices, "{gpu} {allow}");
        }
        assert!(choose(&all[..1], Some("all"), false).is_err());
    }

    #[test]
    fn refusals_list_what_there_is() {
        let all = [adapter(0, "llvmpipe", AdapterKind::Software, "")];
        let message = choose(&all, Some("4090"), false).expect_err("there is none").to_string();
        assert!(message.contains("4090") && message.contains("0: llvmpipe") && message.contains("--allow-software"));
        let message = choose(&[], None, true).expect_err("there is none").to_string();
        assert!(message.contains("no adapter at all") && message.contains("install the driver"));
        let message = choose(&all, None, false).expect_err("software only").to_string();
        assert!(message.contains("install the driver") && message.contains("accept a software adapter"));
        let real = [adapter(0, "Big 20", AdapterKind::Discrete, "0000:01:00.0")];
        let message = choose(&real, Some("small"), false).expect_err("another name").to_string();
        assert!(message.contains("part of a name") && !message.contains("driver of the GPU"), "{message}");
    }
}
