//! The table of connection parameters: their keywords, environment variables and defaults.

use std::collections::BTreeMap;

use super::environment::Environment;
use super::error::ParamsError;

/// A connection parameter: its keyword, the environment variable that sets it, and its default.
struct Keyword {
    name: &'static str,
    variable: Option<&'static str>,
    default: Option<&'static str>,
}

const fn keyword(name: &'static str, variable: Option<&'static str>, default: Option<&'static str>) -> Keyword {
    Keyword { name, variable, default }
}

/// All parameters of libpq 18. Parameters that have no meaning for this client are included, so that it accepts every
/// keyword that libpq accepts.
#[rustfmt::skip]
const KEYWORDS: &[Keyword] = &[
    keyword("service", Some("PGSERVICE"), None),
    keyword("user", Some("PGUSER"), None),
    keyword("password", Some("PGPASSWORD"), None),
    keyword("passfile", Some("PGPASSFILE"), None),
    keyword("channel_binding", Some("PGCHANNELBINDING"), Some("prefer")),
    keyword("connect_timeout", Some("PGCONNECT_TIMEOUT"), None),
    keyword("dbname", Some("PGDATABASE"), None),
    keyword("host", Some("PGHOST"), None),
    keyword("hostaddr", Some("PGHOSTADDR"), None),
    keyword("port", Some("PGPORT"), None),
    keyword("client_encoding", Some("PGCLIENTENCODING"), None),
    keyword("options", Some("PGOPTIONS"), None),
    keyword("application_name", Some("PGAPPNAME"), None),
    keyword("fallback_application_name", None, None),
    keyword("keepalives", None, None),
    keyword("keepalives_idle", None, None),
    keyword("keepalives_interval", None, None),
    keyword("keepalives_count", None, None),
    keyword("tcp_user_timeout", None, None),
    keyword("sslmode", Some("PGSSLMODE"), None),
    keyword("sslnegotiation", Some("PGSSLNEGOTIATION"), Some("postgres")),
    keyword("sslcompression", Some("PGSSLCOMPRESSION"), None),
    keyword("sslcert", Some("PGSSLCERT"), None),
    keyword("sslkey", Some("PGSSLKEY"), None),
    keyword("sslcertmode", Some("PGSSLCERTMODE"), Some("allow")),
    keyword("sslpassword", None, None),
    keyword("sslrootcert", Some("PGSSLROOTCERT"), None),
    keyword("sslcrl", Some("PGSSLCRL"), None),
    keyword("sslcrldir", Some("PGSSLCRLDIR"), None),
    keyword("sslsni", Some("PGSSLSNI"), Some("1")),
    keyword("requirepeer", Some("PGREQUIREPEER"), None),
    keyword("require_auth", Some("PGREQUIREAUTH"), None),
    keyword("min_protocol_version", Some("PGMINPROTOCOLVERSION"), None),
    keyword("max_protocol_version", Some("PGMAXPROTOCOLVERSION"), None),
    keyword("ssl_min_protocol_version", Some("PGSSLMINPROTOCOLVERSION"), Some("TLSv1.2")),
    keyword("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION"), None),
    keyword("gssencmode", Some("PGGSSENCMODE"), Some("disable")),
    keyword("krbsrvname", Some("PGKRBSRVNAME"), None),
    keyword("gsslib", Some("PGGSSLIB"), None),
    keyword("gssdelegation", Some("PGGSSDELEGATION"), None),
    keyword("replication", None, None),
    keyword("target_session_attrs", Some("PGTARGETSESSIONATTRS"), Some("any")),
    keyword("load_balance_hosts", Some("PGLOADBALANCEHOSTS"), Some("disable")),
    keyword("scram_client_key", None, None),
    keyword("scram_server_key", None, None),
    keyword("oauth_issuer", None, None),
    keyword("oauth_client_id", None, None),
    keyword("oauth_client_secret", None, None),
    keyword("oauth_scope", None, None),
    keyword("sslkeylogfile", None, None),
];

/// The values of parameters by keyword. They contain passwords in plain text; therefore the type has no `Debug`.
#[derive(Default)]
pub struct Options(BTreeMap<&'static str, String>);

impl Options {
    /// Returns the value of a parameter. `Some("")` is a parameter that was set to an empty text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets a parameter, in place of any earlier value.
    ///
    /// The obsolete parameter `requiressl` becomes `sslmode=require` or `sslmode=prefer`.
    pub fn store(&mut self, name: &str, value: &str) -> Result<(), ParamsError> {
        let (name, value) = match name {
            "requiressl" if value.starts_with('1') => ("sslmode", "require"),
            "requiressl" => ("sslmode", "prefer"),
            other => (other, value),
        };
        let known = find(name).ok_or_else(|| ParamsError::UnknownOption(name.to_owned()))?;
        self.0.insert(known.name, value.to_owned());
        Ok(())
    }

    /// Sets the parameters that are not set yet from environment variables, or else to their defaults.
    pub fn fill_from_environment(&mut self, env: &dyn Environment) {
        for known in KEYWORDS {
            if self.0.contains_key(known.name) {
                continue;
            }
            let value =
                known.variable.and_then(|variable| env.var(variable)).or_else(|| known.default.map(str::to_owned));
            if let Some(value) = value {
                self.0.insert(known.name, value);
            }
        }
        if !self.0.contains_key("sslmode") {
            self.0.insert("sslmode", self.default_sslmode(env));
        }
    }

    /// Returns the default of `sslmode`. With `sslrootcert=system` it is `verify-full`: the system's authorities issue
    /// certificates to anybody, so that trusting them is safe only if the host name is checked, too.
    fn default_sslmode(&self, env: &dyn Environment) -> String {
        let obsolete = env.var("PGREQUIRESSL");
        if obsolete.is_some_and(|value| value.starts_with('1')) {
            "require".to_owned()
        } else if self.get("sslrootcert") == Some("system") {
            "verify-full".to_owned()
        } else {
            "prefer".to_owned()
        }
    }
}

/// Returns true if libpq has a parameter of this name.
pub fn is_known(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|known| known.name == name)
}

/// Returns the value, or `None` if it is absent or empty. Most parameters of libpq treat an empty value as absent.
pub fn non_empty(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

/// Returns true if C's `isspace` counts this character as a blank.
pub fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_value_replaces_an_earlier_one() {
        let mut options = Options::default();
        options.store("host", "a").unwrap();
        options.store("host", "b").unwrap();
        assert_eq!(options.get("host"), Some("b"));
    }

    #[test]
    fn unknown_keywords_are_refused_by_name() {
        let error = Options::default().store("hots", "a").unwrap_err();
        assert_eq!(error.to_string(), "invalid connection option \"hots\"");
        assert!(!is_known("hots"));
    }

    #[test]
    fn the_obsolete_requiressl_is_an_sslmode() {
        let mut options = Options::default();
        options.store("requiressl", "1").unwrap();
        assert_eq!(options.get("sslmode"), Some("require"));
        options.store("requiressl", "0").unwrap();
        assert_eq!(options.get("sslmode"), Some("prefer"));
    }
}
