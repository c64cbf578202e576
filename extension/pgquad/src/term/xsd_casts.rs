//! The constructor functions of section 17.5, `xsd:integer(A)` as `quad.cast_integer` and so on. NULL is the error.

use pgquad_term::func::cast;
use pgquad_term::Xsd;
use pgrx::prelude::*;

use super::{value, TermArg, TermOut};

/// `xsd:string(A)`.
#[pg_extern(immutable, parallel_safe)]
fn cast_string(term: TermArg<'_>) -> Option<TermOut> {
    value(cast::to_string(&term.term())).map(TermOut)
}

macro_rules! casts {
    ($($name:ident = $xsd:ident;)*) => {$(
        #[doc = concat!("Cast to [`Xsd::", stringify!($xsd), "`].")]
        #[pg_extern(immutable, parallel_safe)]
        fn $name(term: TermArg<'_>) -> Option<TermOut> {
            value(cast::to_xsd(&term.term(), Xsd::$xsd)).map(TermOut)
        }
    )*};
}

casts! {
    cast_boolean = Boolean;
    cast_integer = Integer;
    cast_nonpositiveinteger = NonPositiveInteger;
    cast_negativeinteger = NegativeInteger;
    cast_long = Long;
    cast_int = Int;
    cast_short = Short;
    cast_byte = Byte;
    cast_nonnegativeinteger = NonNegativeInteger;
    cast_unsignedlong = UnsignedLong;
    cast_unsignedint = UnsignedInt;
    cast_unsignedshort = UnsignedShort;
    cast_unsignedbyte = UnsignedByte;
    cast_positiveinteger = PositiveInteger;
    cast_decimal = Decimal;
    cast_double = Double;
    cast_float = Float;
    cast_datetime = DateTime;
    cast_date = Date;
    cast_time = Time;
    cast_gyear = GYear;
    cast_gyearmonth = GYearMonth;
    cast_gmonthday = GMonthDay;
    cast_gday = GDay;
    cast_gmonth = GMonth;
    cast_duration = Duration;
    cast_yearmonthduration = YearMonthDuration;
    cast_daytimeduration = DayTimeDuration;
    cast_datetimestamp = DateTimeStamp;
}
