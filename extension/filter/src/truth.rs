//! Truth values: SQL's three, and one for what ids do not tell.

/// The value of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// False.
    False,
    /// True.
    True,
    /// NULL: an error, or something unbound.
    Null,
    /// Not to be told from ids.
    Unknown,
}

impl Truth {
    /// From a value that may be an error.
    #[must_use]
    pub fn of(value: Option<bool>) -> Self {
        match value {
            Some(true) => Self::True,
            Some(false) => Self::False,
            None => Self::Null,
        }
    }

    /// AND: one false operand is enough.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Null, _) | (_, Self::Null) => Self::Null,
            _ => Self::True,
        }
    }

    /// OR: one true operand is enough.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        !(!self).and(!other)
    }

    /// IS NULL.
    #[must_use]
    pub fn is_null(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Null => Self::True,
            _ => Self::False,
        }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Truth::{False, Null, True, Unknown};

    #[test]
    fn connectives() {
        assert_eq!(False.and(Unknown), False);
        assert_eq!(Null.and(Unknown), Unknown);
        assert_eq!(True.and(Null), Null);
        assert_eq!(Null.and(False), False);
        assert_eq!(True.or(Unknown), True);
        assert_eq!(False.or(Null), Null);
        assert_eq!(Null.or(True), True);
        assert_eq!(False.or(False), False);
        assert_eq!(!Null, Null);
        assert_eq!(Unknown.is_null(), Unknown);
        assert_eq!(Null.is_null(), True);
    }
}
