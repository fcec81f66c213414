//! Files that appear whole or not at all.

use super::exit::Refused;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file written beside its target and renamed over it by [`AtomicFile::commit`]; removed if that never comes.
#[derive(Debug)]
pub(super) struct AtomicFile {
    writer: BufWriter<File>,
    /// Where the bytes are and where they shall be; `None` for what cannot be replaced, such as a device or a pipe.
    rename: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Opens the temporary file, so that an unwritable place is found before the work, not after it.
    ///
    /// # Errors
    /// [`Refused`] where `path` cannot be written.
    pub(super) fn create(path: &Path) -> Result<Self, Refused> {
        let refuse = |reason: &dyn std::fmt::Display| {
            Refused(format!("{} cannot be written ({reason}); name a file in a writable directory", path.display()))
        };
        let target = resolved(path);
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(refuse(&"it is a directory")),
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&target).map_err(|e| refuse(&e))?;
                return Ok(Self { writer: BufWriter::new(file), rename: None });
            }
            Ok(found) if found.permissions().readonly() => return Err(refuse(&"it is read-only")),
            _ => {}
        }
        let Some(name) = target.file_name() else { return Err(refuse(&"it has no file name")) };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let file = File::create(&temporary).map_err(|e| refuse(&e))?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 20, file), rename: Some((temporary, target)) })
    }

    /// Whether both would appear under the same name.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let target = |file: &Self| file.rename.as_ref().map(|(_, target)| target.clone());
        target(self).is_some_and(|t| Some(t) == target(other))
    }

    /// Whether it would appear at `path`.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.rename.as_ref().is_some_and(|(_, target)| *target == resolved(path))
    }

    /// Makes the file appear under its name.
    ///
    /// # Errors
    /// Where the last bytes cannot be written, or the file cannot be renamed.
    pub(super) fn commit(mut self) -> io::Result<()> {
        self.writer.flush()?;
        if let Some((temporary, target)) = &self.rename {
            self.writer.get_ref().sync_all()?;
            fs::rename(temporary, target)?;
            self.rename = None;
        }
        Ok(())
    }
}

/// The one name of what `path` names, if it can be told. Through a symbolic link, so that the link stays and what it
/// points to is replaced.
fn resolved(path: &Path) -> PathBuf {
    let in_its_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    };
    fs::canonicalize(path).ok().or_else(in_its_folder).unwrap_or_else(|| path.to_owned())
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.rename {
            let _ = fs::remove_file(temporary);
        }
    }
}
