//! Who asks: the role that a request runs as.

use std::collections::HashMap;
use std::path::Path;

use axum::http::{header, HeaderMap};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// Who PostgreSQL shall take a request for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A role that logs in with its own password: PostgreSQL checks it.
    Login {
        /// Name of the role.
        role: String,
        /// The password; it goes to PostgreSQL and nowhere else.
        password: String,
    },
    /// A role that the server's own login becomes: for bearer tokens, which are no passwords of PostgreSQL.
    Token(String),
    /// A role that the server's own login becomes, read-only.
    Anonymous(String),
}

impl Identity {
    /// The role that the request runs as.
    pub fn role(&self) -> &str {
        match self {
            Self::Login { role, .. } | Self::Token(role) | Self::Anonymous(role) => role,
        }
    }

    /// Whether PostgreSQL knows the connections of both by the same login.
    pub fn logs_in_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Login { role, .. }, Self::Login { role: other, .. }) => role == other,
            (Self::Login { .. }, _) | (_, Self::Login { .. }) => false,
            _ => true,
        }
    }

    /// Refuses a write by nobody, whose transactions cannot write: the answer asks for credentials, which clients that
    /// wait to be asked send then.
    ///
    /// # Errors
    /// 401.
    pub fn check_write(&self) -> Result<(), Problem> {
        match self {
            Self::Anonymous(_) => Err(Problem::unauthorized(
                "nobody may write without credentials",
            )),
            Self::Login { .. } | Self::Token(_) => Ok(()),
        }
    }
}

/// How requests show who asks.
pub struct Identities {
    /// Roles by the digest of their token: what is compared does not depend on the secret in a way that time would
    /// tell.
    tokens: HashMap<[u8; 32], String>,
    anonymous: Option<String>,
}

impl Identities {
    /// Reads the file of tokens, lines `TOKEN ROLE`.
    ///
    /// # Errors
    /// A file that cannot be read; a line that is none.
    pub fn new(tokens: Option<&Path>, anonymous: Option<String>) -> Result<Self, String> {
        let mut known = HashMap::new();
        if let Some(path) = tokens {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
            for (number, line) in text.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let Some((token, role)) = line.split_once(char::is_whitespace) else {
                    return Err(format!("{name}, line {}: not TOKEN ROLE", number + 1));
                };
                known.insert(digest(token), role.trim().to_owned());
            }
        }
        Ok(Self {
            tokens: known,
            anonymous,
        })
    }

    /// Who sent a request.
    ///
    /// # Errors
    /// 401 where nobody is told and nobody may ask, or the header is none.
    pub fn of(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = values.next() else {
            let anonymous = self.anonymous.clone().map(Identity::Anonymous);
            return anonymous.ok_or_else(|| Problem::unauthorized("who asks is not said"));
        };
        if values.next().is_some() {
            return Err(Problem::bad_request("there are two headers Authorization"));
        }
        let malformed = || Problem::unauthorized("the header Authorization is malformed");
        let value = value.to_str().map_err(|_| malformed())?;
        let (scheme, rest) = value.split_once(' ').ok_or_else(malformed)?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("basic") {
            let bytes = STANDARD.decode(rest).map_err(|_| malformed())?;
            let text = String::from_utf8(bytes).map_err(|_| malformed())?;
            let (role, password) = text.split_once(':').ok_or_else(malformed)?;
            // 63 bytes are the longest name; PostgreSQL would cut a longer one.
            if role.is_empty() || role.len() > 63 || text.contains('\0') {
                return Err(malformed());
            }
            return Ok(Identity::Login {
                role: role.to_owned(),
                password: password.to_owned(),
            });
        }
        if scheme.eq_ignore_ascii_case("bearer") {
            let role = self.tokens.get(&digest(rest)).cloned();
            return role
                .map(Identity::Token)
                .ok_or_else(|| Problem::unauthorized("the bearer token is not known"));
        }
        Err(Problem::unauthorized(format!(
            "the scheme of the header Authorization is not known: {scheme}"
        )))
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn of(value: &str, identities: &Identities) -> Result<Identity, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        identities.of(&headers)
    }

    #[test]
    fn basic_and_bearer() {
        let path = std::env::temp_dir().join(format!("pgquad-tokens-{}", std::process::id()));
        std::fs::write(&path, "# token role\nsecret writer\n\n").unwrap();
        let identities = Identities::new(Some(&path), None).unwrap();
        std::fs::remove_file(&path).unwrap();
        let ada = Identity::Login {
            role: "ada".to_owned(),
            password: "a:b".to_owned(),
        };
        assert_eq!(of("Basic YWRhOmE6Yg==", &identities).unwrap(), ada);
        assert_eq!(
            of("bearer secret", &identities).unwrap(),
            Identity::Token("writer".to_owned())
        );
        for wrong in [
            "Bearer other",
            "Basic !",
            "Basic YWRh",
            "Basic Og==",
            "Digest x",
            "Basic",
        ] {
            assert_eq!(of(wrong, &identities).unwrap_err().status, 401, "{wrong}");
        }
        assert_eq!(identities.of(&HeaderMap::new()).unwrap_err().status, 401);
        let open = Identities::new(None, Some("reader".to_owned())).unwrap();
        assert_eq!(
            open.of(&HeaderMap::new()).unwrap(),
            Identity::Anonymous("reader".to_owned())
        );
        let writes = |identity: Identity| identity.check_write().map_err(|problem| problem.status);
        assert_eq!(
            writes(Identity::Anonymous("reader".to_owned())),
            Err(StatusCode::UNAUTHORIZED)
        );
        assert_eq!(writes(Identity::Token("writer".to_owned())), Ok(()));
    }
}
