//! Whether a certificate names a host, by libpq's rules.

use std::net::IpAddr;

use rustls::pki_types::ServerName;

use super::certificate::{Certificate, tag};

/// Checks that a certificate names the host.
///
/// The alternative names decide; the common name does if none of them is of the host's kind (DNS name or address). A
/// name may start with `*.`, which stands for one label. Source: PostgreSQL 18 documentation, 32.19.1.
///
/// # Errors
/// libpq's sentence on the mismatch.
pub(super) fn check(certificate: &Certificate<'_>, host: &ServerName<'_>) -> Result<(), String> {
    let address = match host {
        ServerName::IpAddress(address) => Some(IpAddr::from(*address)),
        _ => None,
    };
    let host = host.to_str();
    let own_kind = if address.is_some() { tag::IP_ADDRESS } else { tag::DNS_NAME };
    let mut shown = Vec::new();
    let mut use_common_name = true;
    for name in certificate.alternative_names() {
        use_common_name &= name.tag != own_kind;
        match name.tag {
            tag::DNS_NAME => {
                let text = std::str::from_utf8(name.content).unwrap_or_default();
                if matches(text, &host) {
                    return Ok(());
                }
                shown.push(text.to_owned());
            }
            tag::IP_ADDRESS => {
                let named = ip_address(name.content);
                if named.is_some() && named == address {
                    return Ok(());
                }
                shown.extend(named.map(|named| named.to_string()));
            }
            _ => {}
        }
    }
    if use_common_name {
        let name = certificate.common_name().unwrap_or_default();
        if matches(name, &host) {
            return Ok(());
        }
        shown.push(name.to_owned());
    }
    Err(mismatch(&shown, &host))
}

fn mismatch(names: &[String], host: &str) -> String {
    let others = match names.len() {
        0 | 1 => String::new(),
        2 => " (and 1 other name)".to_owned(),
        count => format!(" (and {} other names)", count - 1),
    };
    let first = names.first().map_or("", String::as_str);
    format!("server certificate for \"{first}\"{others} does not match host name \"{host}\"")
}

fn matches(name: &str, host: &str) -> bool {
    name.eq_ignore_ascii_case(host) || matches_wildcard(name, host)
}

/// Whether the host is one label followed by what follows the pattern's `*`.
fn matches_wildcard(pattern: &str, host: &str) -> bool {
    let Some(suffix) = pattern.strip_prefix('*').filter(|rest| rest.starts_with('.')) else {
        return false;
    };
    let Some((label, rest)) = host.len().checked_sub(suffix.len()).and_then(|at| host.split_at_checked(at)) else {
        return false;
    };
    suffix.len() > 1 && !label.is_empty() && !label.contains('.') && rest.eq_ignore_ascii_case(suffix)
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(v4.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    /// A certificate with a common name and alternative names, DNS names or addresses.
    fn certificate(common_name: &str, names: &[&str]) -> Vec<u8> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn checked(common_name: &str, names: &[&str], host: &str) -> Result<(), String> {
        let der = certificate(common_name, names);
        let certificate = Certificate::parse(&der).unwrap();
        check(&certificate, &ServerName::try_from(host.to_owned()).unwrap())
    }

    #[test]
    fn alternative_names_decide_before_the_common_name() {
        assert_eq!(checked("cn.example", &["a.example", "B.example"], "b.EXAMPLE"), Ok(()));
        assert_eq!(checked("cn.example", &[], "cn.example"), Ok(()));
        assert_eq!(
            checked("cn.example", &["a.example"], "cn.example").unwrap_err(),
            "server certificate for \"a.example\" does not match host name \"cn.example\""
        );
        assert_eq!(
            checked("cn.example", &["a.example", "b.example", "::1"], "x").unwrap_err(),
            "server certificate for \"a.example\" (and 2 other names) does not match host name \"x\""
        );
    }

    #[test]
    fn addresses_are_names_of_their_own_kind() {
        assert_eq!(checked("cn", &["127.0.0.1"], "127.0.0.1"), Ok(()));
        assert_eq!(checked("cn", &["::1"], "::1"), Ok(()));
        assert_eq!(checked("127.0.0.1", &["a.example"], "127.0.0.1"), Ok(()));
        assert!(checked("127.0.0.1", &["127.0.0.2"], "127.0.0.1").is_err());
    }

    #[test]
    fn a_wildcard_stands_for_one_label() {
        assert!(matches("*.example.org", "a.example.org"));
        assert!(matches("*.Example.org", "A.example.ORG"));
        assert!(!matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.example.org", "example.org"));
        assert!(!matches("*.example.org", ".example.org"));
        assert!(!matches("*", "a"));
        assert!(!matches("*.", "a."));
        assert!(!matches("a*.example.org", "ab.example.org"));
    }
}
