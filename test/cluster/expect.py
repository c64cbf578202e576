"""What checks of a cluster ask and compare."""

import psycopg2


class Mismatch(AssertionError):
    """Something that is not as it has to be."""


def same(what, got, expected):
    if got != expected:
        raise Mismatch(f"{what}: {str(got)[:300]}, expected {str(expected)[:300]}")


def run(connection, sql, parameters=None):
    """Runs a statement; its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def value(connection, sql):
    """The first column of the first row."""
    return run(connection, sql)[0][0]


def error_of(connection, sql):
    """The SQLSTATE of a statement that fails; "closed" where there is none."""
    try:
        run(connection, sql)
    except psycopg2.Error as error:
        return error.pgcode or "closed"
    return None


def load_people(server, people):
    """Loads so many people, who know the first one and have names, into the store `films`."""
    triples = '<http://x/p%s> <http://x/knows> <http://x/p0> . <http://x/p%s> <http://x/name> "name %s" .'
    server.query(
        f"select quad.load_text((select string_agg(format('{triples}', i, i, i), E'\\n') "
        f"from generate_series(1, {people}) i), store => 'films')"
    )


def run_checks(cluster, report, checks):
    """Runs checks one after the other; their names are the first sentences of their docstrings."""
    for check in checks:
        name = check.__doc__.split(".", maxsplit=1)[0].replace("\n", " ")
        try:
            check()
        except (AssertionError, RuntimeError, psycopg2.Error) as error:
            report.check(False, name, f"{type(error).__name__}: {error}")
        else:
            report.check(True, name)
    cluster.check_crashes(report)
