//! The requests that PostgreSQL is working on for this server, so that they can be shown and cancelled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio_postgres::{CancelToken, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Bytes of a request's text that are kept.
const TEXT_BYTES: usize = 4096;

/// All requests under way.
#[derive(Default)]
pub struct Running {
    next: AtomicU64,
    entries: Mutex<HashMap<u64, Arc<Entry>>>,
}

/// A request under way.
pub struct Entry {
    /// Number of the request, not used again.
    pub id: u64,
    /// `query`, `update` or `load`.
    pub kind: &'static str,
    /// The role that it runs as.
    pub role: String,
    /// Its store, `None` for the default one.
    pub store: Option<String>,
    /// The beginning of its text.
    pub text: String,
    /// What the client calls it (header X-Request-Id).
    pub name: Option<String>,
    /// When it began.
    pub started: SystemTime,
    /// The node that works on it.
    pub node: String,
    /// The process there, 0 where it is not known.
    pub pid: AtomicI32,
    /// Bytes of a document that PostgreSQL has taken, packed if it is.
    pub bytes: AtomicU64,
    cancel: CancelToken,
    tls: Option<MakeRustlsConnect>,
    told: AtomicBool,
}

/// What a request says of itself.
pub struct About<'a> {
    /// `query`, `update` or `load`.
    pub kind: &'static str,
    /// The role that it runs as.
    pub role: &'a str,
    /// Its store.
    pub store: Option<&'a str>,
    /// Its text.
    pub text: &'a str,
    /// What the client calls it.
    pub name: Option<&'a str>,
}

/// A request's place in the list, which it leaves when this is dropped.
pub struct Listed {
    running: Arc<Running>,
    entry: Arc<Entry>,
}

impl Running {
    /// Lists a request.
    pub fn add(
        self: &Arc<Self>,
        about: &About<'_>,
        node: String,
        cancel: CancelToken,
        tls: Option<MakeRustlsConnect>,
    ) -> Listed {
        let entry = Arc::new(Entry {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            kind: about.kind,
            role: about.role.to_owned(),
            store: about.store.map(str::to_owned),
            text: beginning(about.text).to_owned(),
            name: about.name.map(str::to_owned),
            started: SystemTime::now(),
            node,
            pid: AtomicI32::new(0),
            bytes: AtomicU64::new(0),
            cancel,
            tls,
            told: AtomicBool::new(false),
        });
        let mut entries = self.entries.lock().expect("no panic holds it");
        entries.insert(entry.id, entry.clone());
        Listed {
            running: self.clone(),
            entry,
        }
    }

    /// All requests, the oldest first.
    pub fn list(&self) -> Vec<Arc<Entry>> {
        let entries = self.entries.lock().expect("no panic holds it");
        let mut list: Vec<_> = entries.values().cloned().collect();
        list.sort_by_key(|entry| entry.id);
        list
    }

    /// Takes note that a request is cancelled, as long as it is under way. Its connection is not used again: PostgreSQL
    /// does not say when a
    /// cancel request has been delivered.
    fn note(&self, id: u64) -> Option<Arc<Entry>> {
        let entries = self.entries.lock().expect("no panic holds it");
        let entry = entries.get(&id)?;
        entry.told.store(true, Ordering::Relaxed);
        Some(entry.clone())
    }

    /// Cancels a request; whether it was still under way.
    pub async fn cancel(&self, id: u64) -> bool {
        let Some(entry) = self.note(id) else {
            return false;
        };
        let told = match entry.tls.clone() {
            Some(tls) => entry.cancel.cancel_query(tls).await,
            None => entry.cancel.cancel_query(NoTls).await,
        };
        if let Err(error) = told {
            tracing::warn!(%error, "a query could not be cancelled");
        }
        true
    }
}

impl Listed {
    /// The request.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Takes the request off the list; whether somebody has cancelled it.
    pub fn end(self) -> bool {
        self.remove();
        self.entry.told.load(Ordering::Relaxed)
    }

    fn remove(&self) {
        let mut entries = self.running.entries.lock().expect("no panic holds it");
        entries.remove(&self.entry.id);
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The first bytes of a text, whole characters.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::{beginning, TEXT_BYTES};

    #[test]
    fn characters_are_not_cut() {
        let text = "ä".repeat(TEXT_BYTES);
        assert_eq!(beginning(&text).len(), TEXT_BYTES);
        let text = format!("x{text}");
        assert_eq!(beginning(&text).len(), TEXT_BYTES - 1);
        assert_eq!(beginning("ASK {}"), "ASK {}");
    }
}
