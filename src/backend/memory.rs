//! How much memory a run may take: asked before it allocates, because a machine that runs out kills without a message.

use super::BackendError;
use std::fs;
use std::path::Path;

/// Refuses a need of `bytes` where the system is known to have less.
///
/// # Errors
/// [`BackendError::Memory`] with both numbers.
pub(crate) fn require(what: String, bytes: u64, remedy: &'static str) -> Result<(), BackendError> {
    match available(Path::new("/")) {
        Some(available) if bytes > available => {
            Err(BackendError::Memory { what, needed: bytes.div_ceil(1 << 20), available: available >> 20, remedy })
        }
        _ => Ok(()),
    }
}

/// Bytes that this process may still take; `None` where the system does not tell (it does on Linux).
///
/// The least of what is free, what the address-space limit (`ulimit -v`) leaves and what the control group (a
/// container, a batch job) leaves. `root` is where `/proc` and `/sys` are.
fn available(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let free = read("proc/meminfo").and_then(|text| number_after(&text, "MemAvailable:")).map(|kib| kib << 10);
    let address_space = read("proc/self/limits").and_then(|text| {
        let limit = number_after(&text, "Max address space")?;
        let used = number_after(&read("proc/self/status")?, "VmSize:")? << 10;
        Some(limit.saturating_sub(used))
    });
    let group = read("proc/self/cgroup").and_then(|text| {
        let folder = format!("sys/fs/cgroup{}", text.lines().find_map(|line| line.strip_prefix("0::"))?);
        let limit: u64 = read(&format!("{folder}/memory.max"))?.trim().parse().ok()?;
        // Anonymous memory only: the file cache gives way.
        let used = number_after(&read(&format!("{folder}/memory.stat"))?, "anon")?;
        Some(limit.saturating_sub(used))
    });
    [free, address_space, group].into_iter().flatten().min()
}

/// The number that follows `name` at the start of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '\t'])))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        assert_eq!(available(root.path()), None);
        put("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   5000 kB\n");
        assert_eq!(available(root.path()), Some(5000 << 10));
        put("proc/self/status", "Name: x\nVmSize:\t    1000 kB\n");
        put("proc/self/limits", "Max address space         unlimited            unlimited            bytes\n");
        assert_eq!(available(root.path()), Some(5000 << 10));
        put("proc/self/limits", "Max address space         4096000              unlimited            bytes\n");
        assert_eq!(available(root.path()), Some((4000 << 10) - (1000 << 10)));
        put("proc/self/cgroup", "0::/job\n");
        put("sys/fs/cgroup/job/memory.max", "max\n");
        put("sys/fs/cgroup/job/memory.stat", "anon_thp 7\nanon 1000\nfile 5000\n");
        assert_eq!(available(root.path()), Some(3000 << 10));
        put("sys/fs/cgroup/job/memory.max", "2000000\n");
        assert_eq!(available(root.path()), Some(1_999_000));
    }

    #[test]
    fn what_cannot_fit_is_refused_with_numbers() {
        assert!(require("nothing".to_owned(), 0, "x").is_ok());
        let everything = require("everything".to_owned(), u64::MAX, "use less").expect_err("no machine has it");
        assert!(everything.to_string().contains("needs 17592186044416 MiB"), "{everything}");
    }
}
