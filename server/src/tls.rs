//! TLS: the server's certificate, read again when its file changes, and the authorities that PostgreSQL is checked
//! against.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(2);

/// The certificate in force.
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

impl Certificate {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// Files that cannot be read, are no PEM, or do not belong together.
    pub fn read(chain: &Path, key: &Path) -> Result<Arc<Self>, String> {
        let config = server(chain, key)?;
        Ok(Arc::new(Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            config: RwLock::new(config),
        }))
    }

    /// What takes a connection with the certificate of the moment.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.config
            .read()
            .expect("no panic holds it")
            .clone()
            .into()
    }

    /// Reads the files anew whenever they change, for ever. Files that are not right leave the certificate as it is.
    pub async fn watch(self: Arc<Self>) {
        let mut seen = self.times();
        loop {
            tokio::time::sleep(PERIOD).await;
            let now = self.times();
            if now == seen {
                continue;
            }
            seen = now;
            match server(&self.chain, &self.key) {
                Ok(config) => {
                    *self.config.write().expect("no panic holds it") = config;
                    tracing::info!("the certificate has been read again");
                }
                Err(error) => tracing::error!(error, "the certificate stays as it was"),
            }
        }
    }

    fn times(&self) -> [Option<SystemTime>; 2] {
        let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
        [time(&self.chain), time(&self.key)]
    }
}

fn server(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let certificates = certificates(chain)?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| format!("{}: {error}", key.display()))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| format!("{}: {error}", chain.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// How to connect to PostgreSQL servers whose certificates these authorities vouch for.
///
/// # Errors
/// A file that cannot be read or is no PEM.
pub fn client(authorities: &Path) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities)? {
        roots
            .add(certificate)
            .map_err(|error| format!("{}: {error}", authorities.display()))?;
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| wrong(error.to_string()))?
        .collect();
    let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(certificates)
}
