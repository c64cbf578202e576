//! Fields of a query string or of a form (`application/x-www-form-urlencoded`), strictly read.

use percent_encoding::percent_decode;

use crate::problem::Problem;

/// Names and values in their order.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads a text.
    ///
    /// # Errors
    /// 400 for what is not UTF-8 once it is decoded, or contains a NUL, which no text of PostgreSQL can.
    pub fn read(text: &[u8]) -> Result<Self, Problem> {
        let parts = text
            .split(|byte| *byte == b'&')
            .filter(|part| !part.is_empty());
        let fields = parts.map(|part| {
            let mut halves = part.splitn(2, |byte| *byte == b'=');
            let name = decoded(halves.next().unwrap_or_default())?;
            Ok((name, decoded(halves.next().unwrap_or_default())?))
        });
        Ok(Self(fields.collect::<Result<_, Problem>>()?))
    }

    /// Adds the fields of another text.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| n == name)
    }

    /// All values of a name.
    pub fn all(&self, name: &str) -> Vec<String> {
        let found = self.0.iter().filter(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).collect()
    }

    /// The value of a name that may come once.
    ///
    /// # Errors
    /// 400 when it comes more often.
    pub fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut found = self.0.iter().filter(|(n, _)| n == name);
        let first = found.next();
        if found.next().is_some() {
            return Err(Problem::bad_request(format!(
                "parameter \"{name}\" is given more than once"
            )));
        }
        Ok(first.map(|(_, value)| value.as_str()))
    }

    /// As [`Self::one`], of a number.
    ///
    /// # Errors
    /// 400 for what is no such number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.one(name)? else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            Problem::bad_request(format!("parameter \"{name}\" is not a number: {text}"))
        })
    }
}

/// Decodes `+` and `%20`.
fn decoded(text: &[u8]) -> Result<String, Problem> {
    let text: Vec<u8> = text
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    let text = percent_decode(&text)
        .decode_utf8()
        .map_err(|_| Problem::bad_request("a parameter is not UTF-8"))?;
    checked(text.into_owned())
}

/// A text that PostgreSQL can take.
///
/// # Errors
/// 400 for a text with a NUL.
pub fn checked(text: String) -> Result<String, Problem> {
    if text.contains('\0') {
        return Err(Problem::bad_request("the request contains a NUL character"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = Fields::read(b"query=ASK+%7B%7D&g=a&g=%C3%A4&default&&=x").unwrap();
        assert_eq!(fields.one("query").unwrap(), Some("ASK {}"));
        assert_eq!(fields.all("g"), ["a", "ä"]);
        assert_eq!(fields.one("default").unwrap(), Some(""));
        assert!(fields.one("g").is_err());
        assert_eq!(fields.one("none").unwrap(), None);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(Fields::read(b"query=%FF").is_err());
        assert!(Fields::read(b"query=%00").is_err());
        assert_eq!(
            Fields::read(b"a=%zz").unwrap().one("a").unwrap(),
            Some("%zz")
        );
    }
}
