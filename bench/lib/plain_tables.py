"""Citus tables of a user who has no quad store: two heap tables of ids with a covering B-tree, one distributed by
subject and one by object."""

from server import rows


def make(connection, store, shards):
    """Schema `plain` with the quads of a store."""
    rows(connection, "create schema plain")
    for name, column, order in (("by_s", "s", "s, p, o, g"), ("by_o", "o", "o, p, s, g")):
        rows(
            connection,
            f"create table plain.{name} (s bigint not null, p bigint not null, o bigint not null, g bigint not null)",
        )
        beside = (
            "colocate_with => 'plain.by_s'" if name != "by_s" else f"shard_count => {shards}, colocate_with => 'none'"
        )
        rows(connection, f"select create_distributed_table('plain.{name}', '{column}', {beside})")
        rows(connection, f"insert into plain.{name} select s, p, o, g from {store}")
        rows(connection, f"create unique index on plain.{name} ({order})")
        rows(connection, f"vacuum (analyze) plain.{name}")
