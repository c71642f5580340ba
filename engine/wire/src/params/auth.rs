//! `require_auth`: which ways of authentication the user accepts from the server.

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
    /// Each method with its name and what libpq says that the server did, in the order of the type.
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

/// The accepted methods; by default, all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequireAuth {
    accepted: u8,
    text: String,
}

impl RequireAuth {
    /// Reads a comma-separated list of methods to accept, or, each with `!`, to reject. The error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let negated = text.starts_with('!');
        let mut listed = 0;
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let name = match part.strip_prefix('!') {
                Some(_) if !negated => {
                    return Err(format!(
                        "negative require_auth method \"{part}\" cannot be mixed with non-negative methods"
                    ));
                }
                None if negated => {
                    return Err(format!("require_auth method \"{part}\" cannot be mixed with negative methods"));
                }
                Some(name) => name,
                None => part,
            };
            let (method, ..) = AuthMethod::ALL
                .into_iter()
                .find(|(_, known, _)| *known == name)
                .ok_or_else(|| format!("invalid require_auth value: \"{name}\""))?;
            if listed & method.bit() != 0 {
                return Err(format!("require_auth method \"{part}\" is specified more than once"));
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
        Err(format!(
            "authentication method requirement \"{}\" failed: {}",
            self.text,
            AuthMethod::ALL[method as usize].2
        ))
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
        for (method, ..) in AuthMethod::ALL {
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
