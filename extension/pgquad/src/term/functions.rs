//! Functions of SQL that do nothing but call a function on terms.

/// Makes functions of SQL: `name(argument, ..) -> result = function;`, or with another name in SQL
/// `name as "sql"(argument, ..) ..`. Arguments are terms, a result is a `TermOut` or a `bool`; NULL is the error.
macro_rules! sql_functions {
    () => {};
    ($(#[$doc:meta])* $name:ident as $sql:literal ($($argument:ident),+) -> $result:ident = $function:path; $($rest:tt)*) => {
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe, name = $sql, cost = 10)]
        fn $name($($argument: TermArg<'_>),+) -> Option<$result> {
            value($function($(&$argument.term()),+)).map(Into::into)
        }
        sql_functions! { $($rest)* }
    };
    ($(#[$doc:meta])* $name:ident ($($argument:ident),+) -> $result:ident = $function:path; $($rest:tt)*) => {
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe, cost = 10)]
        fn $name($($argument: TermArg<'_>),+) -> Option<$result> {
            value($function($(&$argument.term()),+)).map(Into::into)
        }
        sql_functions! { $($rest)* }
    };
}

pub(crate) use sql_functions;
