//! `require_auth`: which ways of authentication the user accepts from the server.

use super::types::ParamsError;

/// What a server can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// The password in clear text.
    Password,
    /// An MD5 hash of the password.
    Md5,
    /// GSSAPI.
    Gss,
    /// SSPI.
    Sspi,
    /// SCRAM-SHA-256, with or without channel binding.
    ScramSha256,
    /// An OAuth bearer token.
    Oauth,
    /// Nothing: the server is content at once, as with `trust`.
    None,
}

impl AuthMethod {
    const ALL: [(&'static str, Self); 7] = [
        ("password", Self::Password),
        ("md5", Self::Md5),
        ("gss", Self::Gss),
        ("sspi", Self::Sspi),
        ("scram-sha-256", Self::ScramSha256),
        ("oauth", Self::Oauth),
        ("none", Self::None),
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// What libpq says that the server did.
    fn request(self) -> &'static str {
        match self {
            Self::Password => "server requested a cleartext password",
            Self::Md5 => "server requested a hashed password",
            Self::Gss => "server requested GSSAPI authentication",
            Self::Sspi => "server requested SSPI authentication",
            Self::ScramSha256 => "server requested SASL authentication",
            Self::Oauth => "server requested OAUTHBEARER authentication",
            Self::None => "server did not complete authentication",
        }
    }
}

/// The accepted methods; by default, all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequireAuth {
    accepted: u8,
    text: String,
}

impl RequireAuth {
    /// Reads a comma-separated list of methods to accept, or, each with `!`, to refuse.
    pub fn parse(text: &str) -> Result<Self, ParamsError> {
        let negated = text.starts_with('!');
        let mut listed = 0;
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let name = match part.strip_prefix('!') {
                Some(_) if !negated => {
                    return Err(ParamsError(format!(
                        "negative require_auth method \"{part}\" cannot be mixed with non-negative methods"
                    )));
                }
                None if negated => {
                    return Err(ParamsError(format!(
                        "require_auth method \"{part}\" cannot be mixed with negative methods"
                    )));
                }
                Some(name) => name,
                None => part,
            };
            let (_, method) = AuthMethod::ALL
                .into_iter()
                .find(|(known, _)| *known == name)
                .ok_or_else(|| ParamsError(format!("invalid require_auth value: \"{name}\"")))?;
            if listed & method.bit() != 0 {
                return Err(ParamsError(format!("require_auth method \"{part}\" is specified more than once")));
            }
            listed |= method.bit();
        }
        Ok(Self { accepted: if negated || text.is_empty() { !listed } else { listed }, text: text.to_owned() })
    }

    /// Checks what the server asks for.
    ///
    /// # Errors
    /// libpq's sentence on a method that the user does not accept.
    pub fn check(&self, method: AuthMethod) -> Result<(), String> {
        if self.accepted & method.bit() != 0 {
            return Ok(());
        }
        Err(format!("authentication method requirement \"{}\" failed: {}", self.text, method.request()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        RequireAuth::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn only_listed_methods_are_accepted() {
        let accepted = RequireAuth::parse("scram-sha-256,md5").unwrap();
        assert_eq!(accepted.check(AuthMethod::ScramSha256), Ok(()));
        assert_eq!(accepted.check(AuthMethod::Md5), Ok(()));
        assert_eq!(
            accepted.check(AuthMethod::Password).unwrap_err(),
            "authentication method requirement \"scram-sha-256,md5\" failed: server requested a cleartext password"
        );
        assert!(accepted.check(AuthMethod::None).is_err());
    }

    #[test]
    fn negated_methods_are_refused_and_others_accepted() {
        let accepted = RequireAuth::parse("!password,!none").unwrap();
        assert_eq!(accepted.check(AuthMethod::Md5), Ok(()));
        assert!(accepted.check(AuthMethod::Password).is_err());
        assert!(accepted.check(AuthMethod::None).is_err());
    }

    #[test]
    fn everything_is_accepted_by_default() {
        let accepted = RequireAuth::parse("").unwrap();
        for (_, method) in AuthMethod::ALL {
            assert_eq!(accepted.check(method), Ok(()));
        }
    }

    #[test]
    fn contradictory_lists_are_refused() {
        assert_eq!(message("x"), "invalid require_auth value: \"x\"");
        assert_eq!(message("md5,"), "invalid require_auth value: \"\"");
        assert_eq!(
            message("md5,!none"),
            "negative require_auth method \"!none\" cannot be mixed with non-negative methods"
        );
        assert_eq!(message("!md5,none"), "require_auth method \"none\" cannot be mixed with negative methods");
        assert_eq!(message("!none,!none"), "require_auth method \"!none\" is specified more than once");
    }
}
