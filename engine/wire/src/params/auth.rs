//! The connection parameter `require_auth`, which says by which methods the server may authenticate the client.

use thiserror::Error;

use super::error::ParamsError;

/// A method of authentication that a server can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// The server asks for the password in clear text.
    Password,
    /// The server asks for an MD5 hash of the password.
    Md5,
    /// The server asks for authentication by GSSAPI.
    Gss,
    /// The server asks for authentication by SSPI.
    Sspi,
    /// The server asks for SCRAM-SHA-256, with or without channel binding.
    ScramSha256,
    /// The server asks for an OAuth bearer token.
    Oauth,
    /// The server accepts the client without authentication, as with `trust`.
    None,
}

impl AuthMethod {
    /// All methods in the order of the type. Each has its name in `require_auth`, and the words in which libpq
    /// describes such a request of the server.
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Password, "password", "server requested a cleartext password"),
        (Self::Md5, "md5", "server requested a hashed password"),
        (Self::Gss, "gss", "server requested GSSAPI authentication"),
        (Self::Sspi, "sspi", "server requested SSPI authentication"),
        (Self::ScramSha256, "scram-sha-256", "server requested SASL authentication"),
        (Self::Oauth, "oauth", "server requested OAUTHBEARER authentication"),
        (Self::None, "none", "server did not complete authentication"),
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The accepted methods of authentication. By default all methods are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequireAuth {
    accepted: u8,
    text: String,
}

/// The error for a method of authentication that the user does not accept, in libpq's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("authentication method requirement \"{required}\" failed: {reason}")]
pub struct Unaccepted {
    required: String,
    reason: String,
}

impl RequireAuth {
    /// Returns the requirement that accepts all methods.
    pub fn any() -> Self {
        Self { accepted: !0, text: String::new() }
    }

    /// Reads the value of `require_auth`: a comma-separated list of methods to accept or, if each method has a `!`
    /// before it, to reject. As in libpq 18, an empty list accepts only servers that ask for no authentication.
    pub fn parse(text: &str) -> Result<Self, ParamsError> {
        let negated = text.starts_with('!');
        let mut listed = 0;
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let name = match part.strip_prefix('!') {
                Some(_) if !negated => return Err(ParamsError::NegativeMethod(part.to_owned())),
                None if negated => return Err(ParamsError::PositiveMethod(part.to_owned())),
                Some(name) => name,
                None => part,
            };
            let (method, ..) = AuthMethod::ALL
                .into_iter()
                .find(|(_, known, _)| *known == name)
                .ok_or_else(|| ParamsError::UnknownMethod(name.to_owned()))?;
            if listed & method.bit() != 0 {
                return Err(ParamsError::RepeatedMethod(part.to_owned()));
            }
            listed |= method.bit();
        }
        if text.is_empty() {
            listed = AuthMethod::None.bit();
        }
        Ok(Self { accepted: if negated { !listed } else { listed }, text: text.to_owned() })
    }

    /// Checks whether the method that the server asks for is accepted.
    ///
    /// # Errors
    /// Returns an error if the user's `require_auth` does not accept the method.
    pub fn check(&self, method: AuthMethod) -> Result<(), Unaccepted> {
        let is_sasl = matches!(method, AuthMethod::ScramSha256 | AuthMethod::Oauth);
        // The server's SASL request does not decide yet which mechanism is used. [`RequireAuth::check_mechanism`]
        // checks that later.
        let wanted = if is_sasl { AuthMethod::ScramSha256.bit() | AuthMethod::Oauth.bit() } else { method.bit() };
        if self.accepted & wanted != 0 { Ok(()) } else { Err(self.unaccepted(AuthMethod::ALL[method as usize].2)) }
    }

    /// Checks whether the user accepts `mechanism`, a variant of SCRAM that the client has chosen among the SASL
    /// mechanisms that the server offers.
    ///
    /// # Errors
    /// Returns an error if the user's `require_auth` does not accept SCRAM.
    pub fn check_mechanism(&self, mechanism: &str) -> Result<(), Unaccepted> {
        if self.accepted & AuthMethod::ScramSha256.bit() != 0 {
            return Ok(());
        }
        Err(self.unaccepted(&format!("server requested {mechanism} authentication")))
    }

    fn unaccepted(&self, reason: &str) -> Unaccepted {
        Unaccepted { required: self.text.clone(), reason: reason.to_owned() }
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
            accepted.check(AuthMethod::Password).unwrap_err().to_string(),
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
    fn everything_is_accepted_by_default_and_nothing_but_trust_by_an_empty_list() {
        for (method, ..) in AuthMethod::ALL {
            assert_eq!(RequireAuth::any().check(method), Ok(()));
            assert_eq!(RequireAuth::parse("").unwrap().check(method).is_ok(), method == AuthMethod::None);
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
