//! Which adapters there are.

use serde::Serialize;
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

fn enumerate() -> Vec<wgpu::Adapter> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
    let instance = wgpu::Instance::new(descriptor);
    pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY))
}
