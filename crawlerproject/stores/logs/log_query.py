"""The request log asked in SQL (DuckDB): a month of it in seconds, compressed or not, while it is written or after.

A closed day has a twin in Parquet, sorted by host, beside its compressed lines; a question about one host then reads
some kilobytes. The lines stay the truth: where a twin is missing or older than they are, they are read instead.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlerproject.errors import OperatorError
from crawlerproject.stores.logs.request_log import LOG_FIELDS, day_of, log_files, twin_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TYPES = {
    "status": "INTEGER",
    "depth": "INTEGER",
    "tries": "INTEGER",
    "bytes": "BIGINT",
    "offset": "BIGINT",
    "length": "BIGINT",
    "ttfb_seconds": "DOUBLE",
    "seconds": "DOUBLE",
    "delay_seconds": "DOUBLE",
    "rendered": "BOOLEAN",
}
LOG_COLUMNS = {name: _TYPES.get(name, "VARCHAR") for name in LOG_FIELDS}
"""The fields of a line and their SQL types. Times are ISO 8601 in UTC, which sorts and compares as text."""

# A question may run beside a crawl that has 400 MB to itself on a small machine.
QUERY_MEMORY = "512MB"
# Making a twin happens inside the crawl: one thread, and what does not fit goes to the disk.
TWIN_MEMORY = "128MB"
# Rows of a Parquet row group: a host's rows of a day lie in one or two of them.
TWIN_ROW_GROUP = 20_000


def open_log(folder: Path | Sequence[Path], since: str = "", until: str = "") -> DuckDBPyConnection:
    """A connection with the view ``log``: all attempts with ``since`` <= time < ``until`` (ISO text; "" for no bound).

    Several folders are the logs of several workers. Raises OperatorError when there is no log.
    """
    import duckdb  # here: every scrapy command would pay for it at its start, and a crawl needs none of it

    folders = [folder] if isinstance(folder, Path) else folder
    sources = [_sources(each, since[:10], until[:10]) for each in folders]
    lines = [path for found, _ in sources for path in found]
    twins = [path for _, found in sources for path in found]
    if not lines and not twins and not any(list(each.glob("requests-*")) for each in folders):
        where = ", ".join(map(str, folders))
        raise OperatorError(f"There is no request log in {where}; set CRAWL_DIR to the folder of a crawl.")
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit='{QUERY_MEMORY}'; SET enable_progress_bar=false")
    spilled = Path(tempfile.gettempdir()) / f"request-log-{os.getpid()}"  # else in the working folder
    connection.execute(f"SET temp_directory={_text(str(spilled))}")
    parts = []
    if lines:
        parts.append(f"SELECT * FROM {_read_lines(lines)}")
    if twins:
        parts.append(f"SELECT * FROM read_parquet({_quoted(twins)}, union_by_name=true)")
    # Every column, also when no file of the days wanted is there, or only twins of an older version.
    parts.append("SELECT " + ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in LOG_COLUMNS.items()))
    bounds = ["time IS NOT NULL AND url IS NOT NULL"]
    bounds += [f"time {sign} {_text(bound)}" for sign, bound in ((">=", since), ("<", until)) if bound]
    connection.execute(
        f"CREATE VIEW log AS SELECT * FROM ({' UNION ALL BY NAME '.join(parts)}) WHERE {' AND '.join(bounds)}"
    )
    return connection


def attempts(
    folder: Path | Sequence[Path], *, host: str = "", url: str = "", since: str = "", until: str = ""
) -> list[dict[str, Any]]:
    """The attempts at a host and/or a URL, oldest first; empty when there is no log."""
    try:
        connection = open_log(folder, since, until)
    except OperatorError:
        return []
    where = {"host": host, "url": url}
    chosen = {name: value for name, value in where.items() if value}
    condition = " AND ".join(f"{name} = ${name}" for name in chosen) or "true"
    with connection:
        return rows(connection, f"SELECT * FROM log WHERE {condition} ORDER BY time", chosen)


def rows(connection: DuckDBPyConnection, sql: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The rows of a question, each as a dictionary. Raises OperatorError when there is no room to answer it."""
    import duckdb

    try:
        answer = connection.execute(sql, values) if values else connection.execute(sql)
        names = [column[0] for column in answer.description or []]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    except duckdb.OperationalError as error:
        why = str(error).partition("\n")[0].rstrip(".")
        raise OperatorError(
            f"The request log cannot be asked ({why}); it needs some room in {tempfile.gettempdir()}, or in another "
            "folder that TMPDIR names."
        ) from error


def write_twin(packed: Path) -> Path:
    """Write the Parquet twin of a closed day's ``requests-DAY.jsonl.gz``, sorted by host; its path. OSError."""
    import duckdb

    twin = twin_of(packed)
    part, names = twin.with_name(f"{twin.name}.part"), ", ".join(f'"{name}"' for name in LOG_COLUMNS)
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit='{TWIN_MEMORY}'; SET threads=1; SET enable_progress_bar=false")
        connection.execute(f"SET temp_directory={_text(str(twin.with_name(f'{twin.name}.tmp')))}")
        try:
            connection.execute(
                f"COPY (SELECT {names} FROM {_read_lines([packed])} WHERE url IS NOT NULL ORDER BY host, time)"
                f" TO {_text(str(part))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {TWIN_ROW_GROUP})"
            )
        except duckdb.Error as error:
            part.unlink(missing_ok=True)
            raise OSError(f"no Parquet twin: {str(error).splitlines()[0]}") from error
    part.replace(twin)
    return twin


def _sources(folder: Path, since_day: str, until_day: str) -> tuple[list[Path], list[Path]]:
    """Files of lines, and twins that stand for theirs, of the days wanted."""
    days: dict[str, list[Path]] = {}
    for path in log_files(folder):
        # The file of a day holds what ended then; an attempt that began the day before may be in it.
        if (day := day_of(path)) >= since_day and (not until_day or day <= _next_day(until_day)):
            days.setdefault(day, []).append(path)
    lines: list[Path] = []
    twins: list[Path] = []
    for paths in days.values():
        twin = twin_of(paths[0])
        if twin.exists() and all(
            path.suffix == ".gz" and path.stat().st_mtime <= twin.stat().st_mtime for path in paths
        ):
            twins.append(twin)
        else:
            lines += paths
    return lines, twins


def _next_day(day: str) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    except ValueError:
        return day


def _read_lines(paths: list[Path]) -> str:
    columns = "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in LOG_COLUMNS.items()) + "}"
    # ignore_errors: a crash may have torn a line, and the last one may be half written just now.
    return f"read_json({_quoted(paths)}, format='newline_delimited', ignore_errors=true, columns={columns})"


def _quoted(paths: list[Path]) -> str:
    return "[" + ", ".join(_text(str(path)) for path in paths) + "]"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":  # a process of its own: the crawl that closes a day keeps its memory and its loop
    write_twin(Path(sys.argv[1]))
