//! A medium for journals that fails when it is told to.

use leakybins::journal::Medium;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

/// A journal in memory, and what goes wrong with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) read: usize,
    /// Bytes that can be written before the disk is full.
    pub(crate) room: Option<usize>,
    /// Syncs that succeed before one fails.
    pub(crate) syncs: Option<usize>,
}

impl Memory {
    pub(crate) fn with(bytes: &[u8]) -> Self {
        Self { bytes: Arc::new(Mutex::new(bytes.to_vec())), ..Self::default() }
    }

    pub(crate) fn held(&self) -> Vec<u8> {
        self.bytes.lock().expect("no panic").clone()
    }

    /// What is left of it when it is opened again, with nothing going wrong.
    pub(crate) fn again(&self) -> Self {
        Self::with(&self.held())
    }
}

impl Read for Memory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes.lock().expect("no panic");
        let count = bytes.len().saturating_sub(self.read).min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.room.map_or(bytes.len(), |room| bytes.len().min(room));
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room = self.room.map(|room| room - count);
        self.bytes.lock().expect("no panic").extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Medium for Memory {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.bytes.lock().expect("no panic").truncate(length as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        match &mut self.syncs {
            Some(0) => Err(io::Error::other("the cable is out")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}
