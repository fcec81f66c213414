//! What a headless Vulkan run needs from a Linux machine or container, apart from a GPU.

use super::{Check, INSTALL_DRIVER};
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where libraries are looked for, apart from `LD_LIBRARY_PATH`; the folders in them of other architectures, too.
const LIBRARIES: [&str; 6] = ["lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64"];
/// Where drivers announce themselves to the Vulkan loader.
const DRIVERS: [&str; 4] =
    ["etc/vulkan/icd.d", "usr/share/vulkan/icd.d", "usr/local/etc/vulkan/icd.d", "usr/local/share/vulkan/icd.d"];
/// Variables that replace these folders by files, the first one that is set.
const DRIVER_VARIABLES: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// A file system and environment variables.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Machine {
    /// The machine that this runs on.
    pub(super) fn this() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        Self { root: PathBuf::from("/"), variables: env::vars_os().map(text).collect() }
    }

    /// Every check, in the order in which things should be mended.
    pub(super) fn checks(&self) -> Vec<Check> {
        vec![self.loader(), self.driver_files(), self.capabilities(), self.nodes()]
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Files of a folder, sorted; none where it cannot be read.
    fn list(&self, folder: impl AsRef<Path>) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    fn loader(&self) -> Check {
        const NAME: &str = "Vulkan loader";
        let given = self.variable("LD_LIBRARY_PATH").into_iter().flat_map(|paths| paths.split(':')).map(PathBuf::from);
        let usual = LIBRARIES.iter().map(|folder| self.root.join(folder));
        let nested = LIBRARIES.iter().flat_map(|folder| self.list(folder));
        let found = given.chain(usual).chain(nested).map(|folder| folder.join("libvulkan.so.1")).find(|p| p.exists());
        match found {
            Some(path) => Check::ok(NAME, path.display().to_string()),
            None => Check::fail(
                NAME,
                "libvulkan.so.1 not found",
                "install libvulkan1 (Debian, Ubuntu), vulkan-loader (Fedora) or vulkan-icd-loader (Arch)",
            ),
        }
    }

    fn driver_files(&self) -> Check {
        const NAME: &str = "driver files";
        let chosen = DRIVER_VARIABLES.iter().find_map(|name| Some((name, self.variable(name)?)));
        if let Some((name, value)) = chosen {
            let missing: Vec<&str> = value.split(':').filter(|path| !Path::new(path).exists()).collect();
            return if missing.is_empty() {
                Check::ok(NAME, format!("{name}={value}"))
            } else {
                let found = format!("{name} names what does not exist: {}", missing.join(", "));
                Check::fail(NAME, found, format!("unset {name}, or let it name the driver's JSON files"))
            };
        }
        let files: Vec<PathBuf> = DRIVERS.iter().flat_map(|folder| self.list(folder)).collect();
        let names: Vec<String> =
            files.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
        if names.is_empty() {
            Check::fail(NAME, "none", format!("{INSTALL_DRIVER}; {CONTAINER}"))
        } else if self.has_nvidia() && !names.iter().any(|name| name.contains("nvidia")) {
            let found = format!("{}, but none of NVIDIA although its device is here", names.join(", "));
            Check::fail(NAME, found, format!("{INSTALL_DRIVER}; {CONTAINER}"))
        } else {
            Check::ok(NAME, names.join(", "))
        }
    }

    fn capabilities(&self) -> Check {
        const NAME: &str = "NVIDIA container";
        const VARIABLE: &str = "NVIDIA_DRIVER_CAPABILITIES";
        let Some(value) = self.variable(VARIABLE) else {
            return Check::ok(NAME, format!("{VARIABLE} is not set: no NVIDIA container, or its default"));
        };
        if value.split(',').any(|part| matches!(part.trim(), "graphics" | "all")) {
            return Check::ok(NAME, format!("{VARIABLE}={value}"));
        }
        let found = format!("{VARIABLE}={value} leaves Vulkan out");
        if self.has_nvidia() { Check::fail(NAME, found, CONTAINER) } else { Check::warn(NAME, found, CONTAINER) }
    }

    fn has_nvidia(&self) -> bool {
        self.root.join("dev/nvidiactl").exists()
    }

    fn nodes(&self) -> Check {
        const NAME: &str = "device nodes";
        let is_node = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let gpu =
                name.strip_prefix("nvidia").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            gpu || name.starts_with("renderD")
        };
        let nodes: Vec<PathBuf> =
            ["dev", "dev/dri"].iter().flat_map(|folder| self.list(folder)).filter(is_node).collect();
        if nodes.is_empty() {
            return Check::fail(
                NAME,
                "neither /dev/nvidia* nor /dev/dri/renderD*",
                "load the kernel driver; start a container with --gpus all (NVIDIA) or --device /dev/dri (AMD, Intel)",
            );
        }
        let closed = |path: &&PathBuf| {
            OpenOptions::new().read(true).write(true).open(path).is_err_and(|e| e.kind() == ErrorKind::PermissionDenied)
        };
        let names =
            |paths: &[&PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let refused: Vec<&PathBuf> = nodes.iter().filter(closed).collect();
        if refused.is_empty() {
            Check::ok(NAME, names(&nodes.iter().collect::<Vec<_>>()))
        } else {
            let found = format!("no permission for {}", names(&refused));
            Check::warn(NAME, found, "add the user to the group that owns them, usually `render` or `video`")
        }
    }
}

/// How an NVIDIA container has to be started.
const CONTAINER: &str = "start an NVIDIA container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics \
     and libvulkan1, libegl1 and libxext6 in its image";

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    /// A machine with the given files and variables.
    fn machine(files: &[&str], variables: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().expect("a temporary directory");
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, "").expect("a file");
        }
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let machine = Machine { root: root.path().to_owned(), variables };
        (root, machine)
    }

    fn statuses(files: &[&str], variables: &[(&str, &str)]) -> Vec<Status> {
        let (_root, machine) = machine(files, variables);
        let checks = machine.checks();
        assert!(checks.iter().all(|c| c.remedy.is_some() == (c.status != Status::Ok)), "{checks:?}");
        checks.into_iter().map(|check| check.status).collect()
    }

    const LOADER: &str = "usr/lib/x86_64-linux-gnu/libvulkan.so.1";
    const NVIDIA: [&str; 4] = [LOADER, "etc/vulkan/icd.d/nvidia_icd.json", "dev/nvidiactl", "dev/nvidia0"];

    #[test]
    fn a_bare_machine_lacks_everything() {
        assert_eq!(statuses(&[], &[]), [Status::Fail, Status::Fail, Status::Ok, Status::Fail]);
    }

    #[test]
    fn complete_machines_are_fine() {
        assert_eq!(statuses(&NVIDIA, &[("NVIDIA_DRIVER_CAPABILITIES", "compute,graphics")]), [Status::Ok; 4]);
        let mesa = [LOADER, "usr/share/vulkan/icd.d/radeon_icd.x86_64.json", "dev/dri/renderD128"];
        assert_eq!(statuses(&mesa, &[]), [Status::Ok; 4]);
    }

    #[test]
    fn a_compute_only_container_is_recognised() {
        let variables = [("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")];
        let files = [LOADER, "usr/share/vulkan/icd.d/lvp_icd.json", "dev/nvidiactl", "dev/nvidia0"];
        assert_eq!(statuses(&files, &variables), [Status::Ok, Status::Fail, Status::Fail, Status::Ok]);
        assert_eq!(statuses(&[LOADER], &variables)[2], Status::Warn);
    }

    #[test]
    fn named_driver_files_must_exist() {
        let (root, _) = machine(&["driver.json"], &[]);
        let path = root.path().join("driver.json").display().to_string();
        assert_eq!(statuses(&NVIDIA, &[("VK_DRIVER_FILES", &path)])[1], Status::Ok);
        assert_eq!(statuses(&NVIDIA, &[("VK_ICD_FILENAMES", &(path + ":/nowhere/x.json"))])[1], Status::Fail);
    }
}
