//! The encryption of the connections: rustls with the feature `tls`, and nothing without.

use crate::queue::error::Source;

#[cfg(feature = "tls")]
pub(super) type Connector = tokio_postgres_rustls::MakeRustlsConnect;
#[cfg(not(feature = "tls"))]
pub(super) type Connector = tokio_postgres::NoTls;

#[cfg(not(feature = "tls"))]
#[allow(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(super) fn connector() -> Result<Connector, Source> {
    Ok(tokio_postgres::NoTls)
}

/// Makes a connector that trusts the public roots, and those of the file that `PGSSLROOTCERT` names.
#[cfg(feature = "tls")]
pub(super) fn connector() -> Result<Connector, Source> {
    use std::sync::Arc;

    use rustls::pki_types::{CertificateDer, pem::PemObject};

    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let named =
        std::env::var_os("PGSSLROOTCERT").filter(|name| !name.is_empty() && name != "system");
    if let Some(file) = named {
        let before = roots.len();
        for certificate in CertificateDer::pem_file_iter(file)? {
            roots.add(certificate?)?;
        }
        if roots.len() == before {
            return Err("the file that PGSSLROOTCERT names has no certificate in it".into());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Connector::new(config))
}
