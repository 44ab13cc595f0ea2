"""An open RocksDB: each table as it is read, and its handle as a batch writes it."""

from __future__ import annotations

from rocksdict import ColumnFamily, Rdict

from crawlerproject.stores.rocks import options as names


class Tables:
    """The tables of one opened database; nothing of it may be kept beyond ``close``."""

    def __init__(self, database: Rdict, *, viewed: bool = False) -> None:
        """``viewed``: opened without the table that only the crawling process reads."""
        table, handle = database.get_column_family, database.get_column_family_handle
        self.database: Rdict = database  # its own table holds the crawl-wide facts
        self.queue: Rdict = table(names.QUEUE)
        self.seen: Rdict = table(names.SEEN)
        self.pages: Rdict = table(names.PAGES)
        self.hosts: Rdict = table(names.HOSTS)
        self.robots: Rdict = table(names.ROBOTS)
        self.prints: Rdict = table(names.PRINTS)
        self.payloads: Rdict = table(names.PAYLOADS)
        self.queue_handle: ColumnFamily = handle(names.QUEUE)
        self.seen_handle: ColumnFamily = handle(names.SEEN)
        self.pages_handle: ColumnFamily = handle(names.PAGES)
        self.hosts_handle: ColumnFamily = handle(names.HOSTS)
        self.robots_handle: ColumnFamily = handle(names.ROBOTS)
        self.prints_handle: ColumnFamily = handle(names.PRINTS)
        self.payloads_handle: ColumnFamily = handle(names.PAYLOADS)
        if not viewed:
            self.due: Rdict = table(names.DUE)
            self.due_handle: ColumnFamily = handle(names.DUE)

    def close(self, *, failed: bool) -> None:
        """Let go; ``failed``: a write did before, and closing repeats its error, which is not raised again."""
        tables = [self.queue, self.seen, self.pages, self.hosts, self.robots, self.prints, self.payloads]
        tables += [*filter(None, [self.__dict__.get("due")]), self.database]
        self.__dict__.clear()  # the lock on the folder falls when the last handle is gone, not at close() alone
        for table in tables:
            try:
                table.close()
            except Exception:
                if not failed:
                    raise
