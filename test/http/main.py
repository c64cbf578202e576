"""Suite http: the endpoint as its clients see it. A part is a module with `run(report)`."""
import importlib
import sys

from pgquad_test import Report

from endpoint import DATABASE, connect, sql

PARTS = ["w3c", "protocol", "corners", "rights", "clients", "foreign_clients", "gone", "bad", "lifecycle"]


def set_up():
    admin = connect("postgres")
    with admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
        for role in ["http_reader", "http_writer", "http_nobody", "http_slow"]:
            cursor.execute(f"DROP ROLE IF EXISTS {role}")
    admin.close()
    sql("CREATE EXTENSION pgquad")
    sql("SELECT quad.create_store('main'), quad.create_store('other')")
    sql("CREATE ROLE http_reader NOLOGIN")
    sql("CREATE ROLE http_writer LOGIN PASSWORD 'secret'")
    sql("CREATE ROLE http_nobody LOGIN")
    sql("CREATE ROLE http_slow LOGIN")
    sql("ALTER ROLE http_slow SET quad.max_result_rows = 2")
    sql("GRANT SELECT ON quad_stores.main TO http_reader, http_slow")
    sql("GRANT SELECT, INSERT, DELETE ON quad_stores.main TO http_writer")


def tear_down():
    admin = connect("postgres")
    with admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        for role in ["http_reader", "http_writer", "http_nobody", "http_slow"]:
            cursor.execute(f"DROP ROLE {role}")
    admin.close()


def main():
    report = Report("http")
    set_up()
    for part in sys.argv[1:] or PARTS:
        importlib.import_module(part).run(report)
    if not report.failed:
        tear_down()
    report.finish()


main()
