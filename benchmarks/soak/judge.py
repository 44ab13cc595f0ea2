"""Whether a soak was kept exact and polite: the server's log against the crawl's logs and archive, in SQL.

A request of the server's log that the crawl's does not have was on its way, or not committed, when a worker was killed:
it must have ended shortly before a kill, and its page must be in the archive all the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.soak.books import Books
from benchmarks.soak.due import digests, due, reached
from benchmarks.soak.run import PACE_SECONDS
from benchmarks.soak.web import RETRY_AFTER_SECONDS, SoakWeb
from crawlerproject.stores.logs.log_query import open_log
from tests.web.judge import TOLERANCE_SECONDS, Verdict

MEMORY = "3GB"  # two million requests, twice, with their addresses
#: Between the end of an answer and the kill that lost it: a commit is due each second, and a disk that is full or a
#: process that is stopped puts it off.
LOST_SECONDS = 20.0
_BAD_REQUEST = 400  # nginx, of an address that it does not take: its log names neither host nor path then
_SHOWN = 5  # examples of one kind of fault
_TABLES = f"""
CREATE TABLE visits AS
SELECT row_number() OVER () AS id, "end" - took AS start, "end", host, ip, path, 'http://' || host || path AS url,
       status, generation, edition, fault,
       CASE WHEN fault IN ('many', 'busy') THEN {RETRY_AFTER_SECONDS} ELSE 0 END AS rest
FROM read_json($log, format = 'newline_delimited', ignore_errors = true, columns = {{
  "end": 'DOUBLE', took: 'DOUBLE', host: 'VARCHAR', ip: 'VARCHAR', path: 'VARCHAR', status: 'INTEGER',
  generation: 'INTEGER', edition: 'INTEGER', fault: 'VARCHAR'}})
WHERE status <> {_BAD_REQUEST};
CREATE TABLE attempts AS
SELECT row_number() OVER () AS id, l.*, r.generation FROM (
  SELECT url, host, status, reason, truncated, digest, tries, error,
         epoch(time[:-2]::TIMESTAMP) AS clock, epoch("end"[:-2]::TIMESTAMP) - epoch(time[:-2]::TIMESTAMP) AS took
  FROM log WHERE ip IS NOT NULL AND NOT rendered AND status IS DISTINCT FROM {_BAD_REQUEST}) l
ASOF JOIN rounds r ON l.clock >= r.clock;
CREATE TABLE pairs AS
SELECT a.id AS attempt, v.id AS visit, a.start, a."end", v.start AS seen
FROM (SELECT t.id, t.url, t.clock - r.ahead AS start, t.clock - r.ahead + t.took AS "end"
      FROM attempts t JOIN rounds r USING (generation)) a
ASOF LEFT JOIN visits v ON a.url = v.url AND a.start - {TOLERANCE_SECONDS} <= v.start;
CREATE TABLE lost AS
SELECT v.* FROM visits v ANTI JOIN pairs p ON v.id = p.visit;
"""
_CAPTURES = """
CREATE TABLE captures AS
SELECT entry->>'url' AS url, (entry->>'status')::INTEGER AS status, r.generation,
       coalesce(entry->>'truncated' = 'disconnect', false) AS cut
FROM (SELECT line[strpos(line, ' {') + 1:]::JSON AS entry,
             epoch(strptime(split_part(line, ' ', 2), '%Y%m%d%H%M%S')) AS clock
      FROM read_csv($index, header = false, delim = chr(1), quote = '', escape = '', columns = {line: 'VARCHAR'},
                    auto_detect = false, max_line_size = 10000000)) c
ASOF JOIN (SELECT generation, floor(clock) AS clock FROM rounds) r ON c.clock >= r.clock;
"""
#: Other answers are asked for again, and each is archived. So is one that broke off, at its first try.
_FINAL = "status < 500 AND status <> 429 AND NOT cut"
#: Whether a page is one that its host's robots.txt forbids in every second generation (``web.forbidden``).
_SHUT = (
    "regexp_matches(host, '0\\.test') AND starts_with(path, CASE WHEN host LIKE 'pg.%' THEN '/sql-' ELSE '/sect.a' END)"
)
_PAUSES = f"""
SELECT *, start - last AS pause FROM (
  SELECT v.{{key}} AS who, v.path, v.start, greatest({PACE_SECONDS}, lag(CASE WHEN {{rests}} THEN v.rest ELSE 0 END)
           OVER turns) AS promised,
         max(CASE WHEN v.fault = 'drip' THEN least(v."end", p."end") ELSE v."end" END) OVER before AS last
  FROM visits v LEFT JOIN pairs p ON v.id = p.visit
  WINDOW turns AS (PARTITION BY v.{{key}} ORDER BY v.start, v.id),
         before AS (PARTITION BY v.{{key}} ORDER BY v.start, v.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) WHERE last IS NOT NULL
"""
#: What may become of each fault: (reason, what was cut) of the crawl's line.
EXPECTED = {
    "": {"fetched", "not-modified", "redirect", "http-error"},
    "slow": {"fetched", "not-modified", "redirect", "http-error"},
    "reset": {"disconnected"},
    "down": {"disconnected"},
    "many": {"rate-limited"},
    "busy": {"rate-limited"},
    "away": {"rate-limited"},
    "broken": {"http-error"},
    "cut": {"fetched, cut by disconnect", "disconnected, cut by disconnect"},  # the latter of a robots.txt
    "drip": {"fetched, cut by time", "not-modified", "first-byte-timeout", "disconnected", "http-error", "redirect"},
}


class Judged(Verdict):
    """A verdict, and the numbers behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, Any] = {}


class Judge:
    """Of a soak that is not running, as far as it went."""

    def __init__(self, web: SoakWeb, books: Books) -> None:
        self._web = web
        self._books = books
        self._folders = sorted(books.crawl.glob("worker-[0-9]*/log"))
        self._paths = reached(books.folder)
        self.judged = Judged()
        self._sql = open_log(self._folders)
        self._load()

    def run(self) -> Judged:
        """Everything but the commands."""
        checks: tuple[Callable[[], None], ...] = (
            *(self._agreement, self._lost, self._faults, self._pauses),
            *(self._forbidden, self._once, self._content, self._sizes),
        )
        for check in checks:
            check()
        return self.judged

    def _load(self) -> None:
        sql = self._sql
        sql.execute(f"SET memory_limit = '{MEMORY}'; SET preserve_insertion_order = false")
        sql.execute("CREATE TABLE rounds (generation INTEGER, clock DOUBLE, ahead DOUBLE, whole BOOLEAN)")
        rows = [[r.generation, r.began + r.ahead_seconds - 1, r.ahead_seconds, r.whole] for r in self._books.rounds]
        sql.executemany("INSERT INTO rounds VALUES (?, ?, ?, ?)", rows)
        for statement in _TABLES.split(";\n"):
            if statement.strip():
                sql.execute(statement, {"log": str(self._web.log)} if "$log" in statement else None)
        index = [str(path) for path in self._books.crawl.glob("worker-[0-9]*/index/*.cdxj*")]
        sql.execute(_CAPTURES, {"index": index})
        pages = [(url, r.generation) for r in self._books.rounds for url in due(self._web, r.generation, self._paths)]
        self._table("due", ("url", "generation"), pages)

    def _table(self, name: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        made = pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))  # noqa: F841 (DuckDB reads it by name)
        self._sql.execute(f"CREATE TABLE {name} AS SELECT * FROM made")

    # --- asking ---------------------------------------------------------------------------------

    def _one(self, query: str) -> tuple[Any, ...]:
        found = self._sql.execute(query).fetchone()
        assert found is not None
        return found

    def _fact(self, text: str, **numbers: Any) -> None:
        self.judged.facts.append(text)
        self.judged.numbers |= numbers

    def _none(self, what: str, query: str) -> int:
        """A fault unless the query finds nothing; how much it finds."""
        found = self._sql.execute(query).fetchall()
        if found:
            examples = "; ".join(str(row) for row in found[:_SHOWN])
            self.judged.faults.append(f"{len(found):,} times {what}: {examples}")
        return len(found)

    # --- what is asked --------------------------------------------------------------------------

    def _agreement(self) -> None:
        visits, attempts = self._one("SELECT (SELECT count(*) FROM visits), (SELECT count(*) FROM attempts)")
        self._none(
            "our log has a request that the server's has not",
            f"SELECT a.url, a.reason, a.error FROM pairs p JOIN attempts a ON a.id = p.attempt "
            f'WHERE p.visit IS NULL OR p.seen > p."end" + {TOLERANCE_SECONDS}',
        )
        self._none(
            "two of our lines are of one request",
            "SELECT visit FROM pairs WHERE visit IS NOT NULL GROUP BY 1 HAVING count(*) > 1",
        )
        self._none(
            "the logs differ in an answer's status",
            "SELECT v.url, v.status, a.status, v.fault FROM pairs p JOIN attempts a ON a.id = p.attempt "
            "JOIN visits v ON v.id = p.visit WHERE a.status IS NOT NULL AND a.status <> v.status",
        )
        self._fact(
            f"{visits:,} requests by the server's log, {attempts:,} in the crawl's", visits=visits, attempts=attempts
        )

    def _lost(self) -> None:
        kills = [(event["until"],) for event in self._books.noted("events") if event["kind"].startswith("kill")]
        self._table("kills", ("moment",), kills or [(0.0,)])
        self._sql.execute(
            'CREATE TABLE gaps AS SELECT l.*, k.moment - l."end" AS gap FROM lost l '
            "ASOF LEFT JOIN kills k ON l.start <= k.moment"
        )
        self._none(
            "a request is in no log of ours, and nothing was killed then",
            f"SELECT url, start, fault, gap FROM gaps WHERE gap IS NULL OR gap > {LOST_SECONDS}",
        )
        lost, longest = self._one("SELECT count(*), max(gap) FROM gaps")
        self._fact(
            f"{lost:,} requests died with a worker before their commit; the oldest was {longest or 0:.1f} s old",
            lost=lost, lost_oldest_seconds=longest,
        )  # fmt: skip

    def _faults(self) -> None:
        rows = self._sql.execute(
            "SELECT v.fault, CASE WHEN p.visit IS NULL THEN NULL WHEN a.truncated IS NULL THEN a.reason "
            "ELSE a.reason || ', cut by ' || a.truncated END AS outcome, count(*) "
            "FROM visits v LEFT JOIN pairs p ON v.id = p.visit LEFT JOIN attempts a ON a.id = p.attempt "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        table: dict[str, dict[str, int]] = {}
        for fault, outcome, count in rows:
            table.setdefault(fault or "none", {})[outcome or "lost with a killed worker"] = count
            if outcome is not None and outcome not in EXPECTED[fault or ""]:
                self.judged.faults.append(f"{count} requests with fault {fault or 'none'!r} became {outcome!r}")
        self.judged.numbers["faults"] = table

    def _pauses(self) -> None:
        for key in ("host", "ip"):
            rests = "p.visit IS NOT NULL" if key == "host" else "false"
            query = _PAUSES.format(key=key, rests=rests)
            count, smallest, overlaps = self._one(
                f"SELECT count(*), min(pause), count(*) FILTER (pause < 0) FROM ({query})"
            )
            self._none(
                f"a pause at a {key} was cut", f"SELECT * FROM ({query}) WHERE pause < promised - {TOLERANCE_SECONDS}"
            )
            (names,) = self._one(f"SELECT count(DISTINCT {key}) FROM visits")
            text = f"{names:,} {key}s, {count:,} pauses, the smallest {smallest:.4f} s of {PACE_SECONDS:g} s promised"
            numbers = {f"{key}s": names, f"{key}_smallest_pause_seconds": smallest, f"{key}_overlaps": overlaps}
            self._fact(f"{text}, {overlaps} overlaps", **numbers)

    def _forbidden(self) -> None:
        """Pages that a robots.txt forbids from this generation on, once the crawl had read that."""
        known = (
            'SELECT v.host, v.generation, min(v."end") AS read FROM visits v JOIN pairs p ON p.visit = v.id '
            "WHERE v.path = '/robots.txt' AND v.status = 200 AND v.fault IN ('', 'slow') GROUP BY ALL"
        )
        self._none(
            "a page was asked for that robots.txt forbids",
            f"SELECT v.url, v.generation FROM visits v JOIN ({known}) k USING (host, generation) "
            f"WHERE v.start > k.read AND generation % 2 = 1 AND {_SHUT}",
        )

    def _once(self) -> None:
        """Every page that is due has one final capture in each whole round, and no address has two."""
        self._sql.execute(
            f"CREATE TABLE taken AS SELECT url, generation, count(*) FILTER ({_FINAL}) AS times, bool_or(cut) AS cut "
            "FROM captures WHERE NOT regexp_matches(url, '/(robots|rules)\\.txt$') GROUP BY ALL"
        )
        self._none("an address was archived twice in a round", "SELECT * FROM taken WHERE times > 1")
        tried = (
            "SELECT url, generation, count(*) AS tries, bool_and(reason IN ('disconnected', 'first-byte-timeout', "
            "'rate-limited', 'http-error')) AS failed FROM attempts GROUP BY ALL"
        )
        self._sql.execute(
            "CREATE TABLE missing AS SELECT d.url, d.generation, t.tries, t.failed, r.whole, "
            "split_part(d.url, '/', 3) AS host, d.url[7 + length(split_part(d.url, '/', 3)) + 1:] AS path FROM due d "
            "JOIN rounds r USING (generation) LEFT JOIN taken c USING (url, generation) "
            f"LEFT JOIN ({tried}) t USING (url, generation) "
            "WHERE coalesce(c.times, 0) = 0 AND NOT coalesce(c.cut, false)"
        )
        # Where a robots.txt fails, the copy of the round before holds, and with it what that forbade.
        self._sql.execute(
            "CREATE TABLE unheard AS SELECT m.url, m.generation FROM missing m JOIN (SELECT host, generation "
            "FROM visits WHERE path = '/robots.txt' GROUP BY ALL HAVING NOT bool_or(status = 200 AND "
            f"fault IN ('', 'slow'))) USING (host, generation) WHERE generation > 0 AND {_SHUT}"
        )
        self._none(
            "a page that was due was not archived",
            "SELECT * FROM missing ANTI JOIN unheard USING (url, generation) "
            "WHERE whole AND NOT coalesce(failed, false)",
        )
        (failed,) = self._one("SELECT count(*) FROM missing WHERE failed AND whole")
        (unheard,) = self._one("SELECT count(*) FROM unheard")
        (taken, visits) = self._one(
            "SELECT count(*), count(DISTINCT d.url) FROM due d JOIN taken t USING (url, generation) "
            "WHERE t.times = 1 OR t.cut"
        )
        (open_,) = self._one("SELECT count(*) FROM missing WHERE NOT whole")
        self._fact(
            f"{taken:,} visits that were due, to {visits:,} pages, each archived once; {failed:,} given up after their "
            f"tries failed; {unheard:,} forbidden by the copy of a robots.txt that failed; "
            f"{open_:,} left of a round that is not over",
            taken=taken, pages=visits, given_up=failed, unheard=unheard, left=open_,
        )  # fmt: skip
        (captures,) = self._one("SELECT count(*) FROM captures")
        self.judged.numbers["captures"] = captures

    def _content(self) -> None:
        """What was archived is the edition that the server's log names."""
        editions = {number for (number,) in self._sql.execute("SELECT DISTINCT edition FROM visits").fetchall()}
        self._table("editions", ("class", "path", "edition", "digest"), [*digests(self._web, editions, self._paths)])
        both = (
            "FROM pairs p JOIN visits v ON v.id = p.visit JOIN attempts a ON a.id = p.attempt "
            "JOIN editions e ON e.class = split_part(v.host, '.', 1) AND e.path = v.path AND e.edition = v.edition "
            "WHERE v.status = 200 AND a.truncated IS NULL AND a.reason = 'fetched' AND v.fault <> 'cut'"
        )
        self._none("a page is not what was served", f"SELECT v.url, v.edition {both} AND a.digest <> e.digest")
        (same,) = self._one(f"SELECT count(*) {both} AND a.digest = e.digest")
        self._fact(f"{same:,} pages whose digest is that of the edition that was served", same=same)

    def _sizes(self) -> None:
        (known,) = self._one("SELECT count(DISTINCT url) FROM attempts")
        self.judged.numbers["known_urls"] = known
        self.judged.numbers["rounds"] = self._sql.execute(
            'SELECT generation, count(*), min(start), max("end") FROM visits GROUP BY 1 ORDER BY 1'
        ).fetchall()


def commands(crawl: Path) -> Judged:
    """``scrapy audit`` and ``scrapy verify``, and what the logs of the processes say of errors."""
    judged = Judged()
    for name in ("audit", "verify"):
        command = [sys.executable, "-m", "scrapy", name, str(crawl)]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        said = asked.stdout.strip().splitlines()
        if asked.returncode:
            judged.faults.append(f"scrapy {name}: {' | '.join([*said[-_SHOWN:], asked.stderr])[-2000:]}")
        judged.facts.append(f"scrapy {name}: {said[-1] if said else ''}")
    for path in [*crawl.glob("worker-[0-9]*.log"), crawl.with_suffix(".log")]:
        text = path.read_text(errors="replace")
        if "Traceback" in text:
            at = text.index("Traceback")
            judged.faults.append(f"{path.name} has {text.count('Traceback')} tracebacks: {text[at : at + 2000]}")
        judged.faults += [f"{path.name}: the guard had to refuse a request"] * ("guard_refused" in text)
    poisoned = [path for path in crawl.glob("worker-[0-9]*/poison.json") if "true" in path.read_text()]
    judged.facts.append(f"{len(poisoned)} workers have set a page aside as poison")
    return judged
