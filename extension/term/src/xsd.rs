//! The XML Schema datatypes whose values are understood.

/// Namespace of the XML Schema datatypes.
pub const XSD_NS: &str = "http://www.w3.org/2001/XMLSchema#";
/// Datatype of language strings.
pub const RDF_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";

macro_rules! datatypes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $local:literal;)*) => {
        /// A datatype whose values are understood, apart from `xsd:string`, which has a
        /// [`crate::LiteralKind`] of its own. The numbers are stored on disk: never change them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Xsd {
            $($(#[$doc])* #[doc = concat!("`xsd:", $local, "`")] $name = $code,)*
        }

        impl Xsd {
            /// Every datatype, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The datatype with this number.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The datatype with this local name.
            #[must_use]
            pub fn from_local_name(name: &str) -> Option<Self> {
                match name {
                    $($local => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The IRI.
            #[must_use]
            pub const fn iri(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("http://www.w3.org/2001/XMLSchema#", $local),)*
                }
            }
        }
    };
}

datatypes! {
    Boolean = 1, "boolean";
    Integer = 2, "integer";
    NonPositiveInteger = 3, "nonPositiveInteger";
    NegativeInteger = 4, "negativeInteger";
    Long = 5, "long";
    Int = 6, "int";
    Short = 7, "short";
    Byte = 8, "byte";
    NonNegativeInteger = 9, "nonNegativeInteger";
    UnsignedLong = 10, "unsignedLong";
    UnsignedInt = 11, "unsignedInt";
    UnsignedShort = 12, "unsignedShort";
    UnsignedByte = 13, "unsignedByte";
    PositiveInteger = 14, "positiveInteger";
    Decimal = 15, "decimal";
    Double = 16, "double";
    Float = 17, "float";
    DateTime = 18, "dateTime";
    Date = 19, "date";
    Time = 20, "time";
    GYear = 21, "gYear";
    GYearMonth = 22, "gYearMonth";
    GMonthDay = 23, "gMonthDay";
    GDay = 24, "gDay";
    GMonth = 25, "gMonth";
    Duration = 26, "duration";
    YearMonthDuration = 27, "yearMonthDuration";
    DayTimeDuration = 28, "dayTimeDuration";
    DateTimeStamp = 29, "dateTimeStamp";
}

impl Xsd {
    /// The number, 1 to 29.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether this is `xsd:integer` or derived from it.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        self.code() >= Self::Integer.code() && self.code() <= Self::PositiveInteger.code()
    }

    /// Whether the values are numbers.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        self.code() >= Self::Integer.code() && self.code() <= Self::Float.code()
    }

    /// Least and greatest value of an integer type; `None` where there is no bound.
    #[must_use]
    pub const fn integer_bounds(self) -> (Option<i128>, Option<i128>) {
        match self {
            Self::NonPositiveInteger => (None, Some(0)),
            Self::NegativeInteger => (None, Some(-1)),
            Self::Long => (Some(i64::MIN as i128), Some(i64::MAX as i128)),
            Self::Int => (Some(i32::MIN as i128), Some(i32::MAX as i128)),
            Self::Short => (Some(i16::MIN as i128), Some(i16::MAX as i128)),
            Self::Byte => (Some(i8::MIN as i128), Some(i8::MAX as i128)),
            Self::NonNegativeInteger => (Some(0), None),
            Self::UnsignedLong => (Some(0), Some(u64::MAX as i128)),
            Self::UnsignedInt => (Some(0), Some(u32::MAX as i128)),
            Self::UnsignedShort => (Some(0), Some(u16::MAX as i128)),
            Self::UnsignedByte => (Some(0), Some(u8::MAX as i128)),
            Self::PositiveInteger => (Some(1), None),
            _ => (None, None),
        }
    }

    /// Whether an integer lies in the value space of this integer type.
    #[must_use]
    pub const fn admits(self, value: i128) -> bool {
        let (low, high) = self.integer_bounds();
        if let Some(low) = low {
            if value < low {
                return false;
            }
        }
        match high {
            Some(high) => value <= high,
            None => true,
        }
    }
}
