"""Tables of DuckDB in a file of their own: what does not fit into its share of memory goes to disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from crawlerproject.batch.engines.ranks import Reader
from crawlerproject.errors import OperatorError

_BATCH_ROWS = 65_536
_INCOMING = "incoming"


@contextmanager
def duck_tables(work: Path, memory: str, done: Callable[[int], None]) -> Iterator[DuckTables]:
    """Tables below ``work``. ``memory`` as DuckDB has it ("2GB"), "" for its own choice: 80 % of the machine's.

    ``done`` is called with the bytes of each file that was read. Raises OperatorError: no memory, no disk, no sense.
    """
    try:
        with duckdb.connect(work / "tables.duckdb") as connection:
            yield DuckTables(connection, work, memory, done)
    except duckdb.Error as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise OperatorError(f"DuckDB could not do it: {first}; see --memory, and the room in {work}.") from error


class DuckTables:
    """``batch.engines.ranks.Tables``."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, work: Path, memory: str, done: Callable[[int], None]
    ) -> None:
        self._connection = connection
        self._done = done
        self._connection.execute(f"SET temp_directory='{str(work / 'spilled').replace(chr(39), chr(39) * 2)}'")
        # No order is asked for but where a query says it; to keep one costs memory.
        self._connection.execute("SET preserve_insertion_order=false")
        if memory:
            self._connection.execute("SET memory_limit=?", [memory])

    def fill(self, name: str, files: Sequence[Path], read: Reader, schema: pa.Schema) -> None:
        self.put(name, schema.empty_table())
        for file in files:
            for batch in read(str(file)):
                self._from(f"INSERT INTO {name}", pa.Table.from_batches([batch]))
            self._done(file.stat().st_size)

    def put(self, name: str, table: pa.Table) -> None:
        self._from(f"CREATE OR REPLACE TABLE {name} AS", table)

    def keep(self, name: str, query: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")

    def row(self, query: str) -> tuple[Any, ...]:
        (row,) = self._connection.execute(query).fetchall()
        return tuple(row)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        yield from self._connection.sql(query).to_arrow_reader(_BATCH_ROWS)

    def _from(self, statement: str, table: pa.Table) -> None:
        self._connection.register(_INCOMING, table)
        self._connection.execute(f"{statement} SELECT * FROM {_INCOMING}")
        self._connection.unregister(_INCOMING)
