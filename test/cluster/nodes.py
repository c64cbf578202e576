"""A Citus cluster of throw-away servers on loopback: one coordinator, two workers."""

from pgquad_test import Server

SETTINGS = {
    # Citus insists on being first.
    "shared_preload_libraries": "citus,pgquad",
    "max_prepared_transactions": 100,
    "wal_level": "logical",
    "fsync": "off",
    # Shards are looked at by name, in the catalogs too.
    "citus.override_table_visibility": "off",
}


class Cluster:
    """Starts on entering, stops and is removed on leaving."""

    def __init__(self):
        self.coordinator = Server("cluster-coordinator", SETTINGS)
        self.workers = [Server(f"cluster-worker{number}", SETTINGS) for number in (1, 2)]

    @property
    def servers(self):
        return [self.coordinator, *self.workers]

    def __enter__(self):
        try:
            for server in self.servers:
                server.init().start()
                server.query("create extension citus")
            self.coordinator.query("select citus_set_coordinator_host('127.0.0.1', %s)", (self.coordinator.port,))
            for worker in self.workers:
                self.coordinator.query("select citus_add_node('127.0.0.1', %s)", (worker.port,))
            self.coordinator.query("create extension pgquad")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.remove()
