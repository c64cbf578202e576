//! Where received rows wait that memory has no room for.

use pgquad_cluster::exchange::SpillFile;
use pgrx::pg_sys;

use crate::storage::TempFile;

/// A temporary file; there is none before something is written.
struct Waiting {
    file: Option<TempFile<u8>>,
    context: pg_sys::MemoryContext,
}

/// A file for the rows of one query, whose memory lives in `context`.
pub fn spill_file(context: pg_sys::MemoryContext) -> Box<dyn SpillFile> {
    Box::new(Waiting {
        file: None,
        context,
    })
}

impl SpillFile for Waiting {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        let file = self.file.get_or_insert_with(|| TempFile::new(self.context));
        file.write(at, bytes);
    }

    fn read(&mut self, at: u64, bytes: &mut [u8]) {
        if let Some(file) = &self.file {
            file.read(at, bytes);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // After an error the resource owner closes it.
        if let Some(file) = self.file.take().filter(|_| !std::thread::panicking()) {
            file.close();
        }
    }
}
