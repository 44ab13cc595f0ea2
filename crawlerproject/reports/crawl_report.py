"""What the request log says of a whole crawl: the questions behind ``scrapy report``, asked in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.reasons import ANSWERED, REMEDIES, Reason
from crawlerproject.rules.politeness.pause_audit import ROUNDING_SECONDS
from crawlerproject.stores.logs.log_query import open_log, rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Points of a plot over time: more than a screen shows, and few enough that a pause of some seconds is no gap.
_MOST_POINTS, _LEAST_POINTS, _LEAST_SECONDS = 120, 12, 5.0
# Rows of a table: what is not among the first is no news.
_FIRST = 25
_MOST_REDIRECTS = 10  # of a seed: Heritrix and browsers follow some 20
_FIRST_ERROR = 400
# Of seeds, hosts and failures, which someone may look up.
_MOST_LISTED = 200
# A host's pages before it can be listed as repeating itself, and the largest share of new ones with which it is (ours).
_ENOUGH_PAGES = 5
_MOST_NEW_SHARE = 0.5

# Upper bounds of the bars, seconds.
_TTFB_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_MARGIN_BOUNDS = (-ROUNDING_SECONDS, 0.05, 0.25, 1.0, 5.0, 20.0, 60.0)

_HOPS = "rtrim(coalesce(hop, ''), 'R')"  # a redirect is of the kind of what led to it
# The ports of one name are one host. Patterns only of what can have a match: a fifth of the time (measured).
_HOST_NAME = "CASE WHEN contains(host, ':') THEN regexp_replace(host, ':[0-9]*$', '') ELSE host END"
_ANSWERED = ", ".join(f"'{reason}'" for reason in sorted(ANSWERED))
_FAILED = f"(status >= 400 OR status IS NULL AND reason NOT IN ({_ANSWERED}))"
# The extension of the last path segment, lower-case; '' when it has none. Looked for at the path's end alone, a fifth
# of the time that a pattern of the whole URL takes (measured).
_PATH = "CASE WHEN contains(url, '?') OR contains(url, '#') THEN regexp_extract(url, '^[^?#]*') ELSE url END"
_EXTENSION = f"lower(regexp_extract(right({_PATH}, 9), '[.]([A-Za-z0-9]{{1,8}})$', 1))"
_GOOD = "status = 200 AND NOT robots AND NOT requisite"
# Of each attempt what a figure is made of, in as few bytes as hold it: ten million have to pass through the memory of a
# question. ``requisite``: what a page needs to be seen, and what it asked for in the browser: no pages, as the limits
# of a crawl count them. Of URLs 64 bits of their MD5 stand for them (DuckDB's hash, 2.0, is one value for many that are
# alike; digests alone are hashed by it), but for those that may be listed. A line without a time that can be read is
# left out, as a torn one is.
_ATTEMPTS = (
    'TRY_CAST(time AS TIMESTAMP) AS began, TRY_CAST("end" AS TIMESTAMP) AS ended, md5_number_lower(url) AS page,'
    " status::SMALLINT AS status, reason, host, ip IS NOT NULL AS reached, coalesce(hop, '') = '' AS seed,"
    f" {_HOPS} = '' AS of_seed, {_HOPS} LIKE '%P' AS robots, {_HOPS} LIKE '%E' AS requisite, mime, bytes,"
    f" CASE WHEN of_seed OR {_FAILED} THEN url END AS url, location,"
    f" CASE WHEN {_GOOD} THEN {_EXTENSION} END AS extension,"
    " ttfb_seconds, delay_seconds, CASE WHEN digest IS NOT NULL THEN hash(digest) END AS digest, rendered, duplicate"
)
# A page's words were archived: those of its answer, or of what a browser made of it, which has no status of its own.
_PAGE = "(status = 200 OR rendered) AND NOT robots AND NOT requisite AND digest IS NOT NULL"
_OF_PAGES = "status IS NOT NULL AND NOT robots AND NOT requisite"
_PAGES = f"count(*) FILTER ({_OF_PAGES}) AS pages"
# Of each URL of a page the row of its last attempt, of its last answer with 200, and the last with words.
_URLS = (
    f"page, count(*)::UINTEGER AS attempts, count(status) > 0 AS answered, arg_max(rowid, began) AS last,"
    f" arg_max(rowid, began) FILTER ({_GOOD}) AS good, arg_max(rowid, began) FILTER ({_PAGE}) AS worded"
)
_MOMENT = "'%Y-%m-%dT%H:%M:%S.%fZ'"  # as the log writes it


class Count(NamedTuple):
    """A name and how often."""

    name: str
    number: int


class Interval(NamedTuple):
    """One interval of the crawl."""

    time: str
    pages: int
    bytes: int
    rendered: int


class SeedEnd(NamedTuple):
    """What became of a seed."""

    url: str
    good: bool
    became: str


@dataclass(slots=True)
class CrawlReport:
    """All figures; every list in the order in which it is shown."""

    attempts: int = 0
    pages: int = 0  # URLs that answered, without robots.txt and what pages need
    visits: int = 0  # answers of theirs
    requisites: int = 0  # answers of what pages need
    bytes: int = 0
    hosts: int = 0
    began: str = ""
    ended: str = ""
    over_time: list[Interval] = field(default_factory=list)
    moment_seconds: float = 0.0  # how long each of them is
    statuses: list[Count] = field(default_factory=list)
    errors: list[Count] = field(default_factory=list)
    response_times: list[Count] = field(default_factory=list)
    margins: list[Count] = field(default_factory=list)  # pause kept minus pause promised
    short_pauses: int = 0
    types: list[Count] = field(default_factory=list)
    duplicates: list[Count] = field(default_factory=list)
    rendered: int = 0
    extensions: list[dict[str, Any]] = field(default_factory=list)
    stale_hosts: list[dict[str, Any]] = field(default_factory=list)
    # The first so many, the worst or largest first, and how many there are.
    seeds: list[SeedEnd] = field(default_factory=list)
    seeds_in_all: int = 0
    by_host: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)  # URLs whose last attempt failed
    failed_in_all: int = 0
    # Of the crawl itself, beside its log: what stands on the title page, a name and its text, and refusals by reason.
    about: list[tuple[str, str]] = field(default_factory=list)
    refused: list[Count] = field(default_factory=list)


def crawl_report(logs: Path | Sequence[Path], since: str = "", until: str = "") -> CrawlReport:
    """Read the log once per figure; OperatorError when there is none."""
    with open_log(logs, since, until) as log:
        log.execute("SET preserve_insertion_order = false")  # of the lines, which costs a tenth
        rows(log, f"CREATE TEMP TABLE a AS SELECT {_ATTEMPTS} FROM log WHERE began IS NOT NULL")
        rows(log, f"CREATE TEMP TABLE u AS SELECT {_URLS} FROM a WHERE NOT robots AND NOT requisite GROUP BY page")
        report = _totals(log)
        if not report.attempts:
            return report
        report.over_time, report.moment_seconds = _over_time(log)
        report.statuses = _counts(log, "CAST(status AS VARCHAR)", "status IS NOT NULL", "name")
        # A page that a browser made has no status of its own, and is no error.
        report.errors = _counts(log, "reason", f"status IS NULL AND reason NOT IN ({_ANSWERED})")
        report.response_times = _histogram(
            log, "SELECT ttfb_seconds AS x FROM a WHERE ttfb_seconds IS NOT NULL", _TTFB_BOUNDS
        )
        report.margins = _margins(log)
        report.short_pauses = report.margins[0].number
        report.types = _counts(log, "coalesce(mime, '(none)')", "status = 200 AND NOT robots")
        report.duplicates = _duplicates(log)
        report.extensions = _extensions(log)
        report.stale_hosts = _stale_hosts(log)
        report.seeds = _seeds(log)
        report.seeds_in_all = len(report.seeds)
        report.by_host = _by_host(log)
        report.failed, report.failed_in_all = _failed(log)
    return report


def seed_addresses(logs: Sequence[Path]) -> list[str]:
    """The seeds that were asked for, the earliest first; none where no log is kept."""
    try:
        log = open_log(logs)
    except OperatorError:
        return []
    with log:
        asked = "SELECT url, min(time) AS first FROM log WHERE coalesce(hop, '') = ''"
        return [row["url"] for row in rows(log, f"{asked} GROUP BY url ORDER BY first, url")]


def listed(seeds: Sequence[SeedEnd]) -> list[SeedEnd]:
    """The first so many, those that were not fetched before the others."""
    return sorted(seeds, key=lambda seed: seed.good)[:_MOST_LISTED]


def _totals(log: DuckDBPyConnection) -> CrawlReport:
    (row,) = rows(
        log,
        f"SELECT count(*) AS attempts, (SELECT count(*) FROM u WHERE answered) AS pages,"
        f" count(*) FILTER ({_OF_PAGES}) AS visits, count(*) FILTER (status IS NOT NULL AND requisite) AS requisites,"
        f" coalesce(sum(bytes), 0)::BIGINT AS bytes, count(DISTINCT host) AS hosts,"
        f" coalesce(strftime(min(began), {_MOMENT}), '') AS began,"
        f" coalesce(strftime(max(ended), {_MOMENT}), '') AS ended,"
        " count(*) FILTER (rendered) AS rendered FROM a",
    )
    return CrawlReport(**row)


def _over_time(log: DuckDBPyConnection) -> tuple[list[Interval], float]:
    """Moments and how long each is, seconds."""
    (span,) = rows(log, "SELECT epoch(max(began)) - epoch(min(began)) AS s FROM a")
    points = max(_LEAST_POINTS, min(_MOST_POINTS, int(span["s"] / _LEAST_SECONDS)))
    found = rows(
        log,
        "WITH w AS (SELECT epoch(min(began)) AS first, greatest((epoch(max(began)) - first) / $points, 0.001) AS width"
        " FROM a),"
        " b AS (SELECT least(CAST(floor((epoch(began) - first) / width) AS INTEGER), $points - 1) AS n,"
        f" {_PAGES}, sum(bytes)::BIGINT AS bytes,"
        " count(*) FILTER (rendered) AS rendered FROM a, w GROUP BY n)"
        " SELECT strftime(make_timestamp(CAST((first + i.n * width) * 1e6 AS BIGINT)), '%Y-%m-%d %H:%M:%S') AS time,"
        " coalesce(pages, 0) AS pages, coalesce(bytes, 0) AS bytes, coalesce(rendered, 0) AS rendered, width"
        " FROM range($points) AS i(n) LEFT JOIN b ON b.n = i.n, w ORDER BY i.n",
        {"points": points},
    )
    width = found[0]["width"]
    return [Interval(row["time"], row["pages"], row["bytes"], row["rendered"]) for row in found], float(width)


def _counts(log: DuckDBPyConnection, name: str, where: str, order: str = "count DESC, name") -> list[Count]:
    found = rows(log, f"SELECT {name} AS name, count(*) AS count FROM a WHERE {where} GROUP BY name ORDER BY {order}")
    return [Count(row["name"], row["count"]) for row in found[:_FIRST]]


def _margins(log: DuckDBPyConnection) -> list[Count]:
    """How much longer than promised pauses were, each from the end of all that a host was asked before."""
    before = "PARTITION BY name ORDER BY began ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    # Sorted by numbers of names: half of what it takes by the names (measured).
    values = (
        f"WITH n AS (SELECT host, dense_rank() OVER (ORDER BY {_HOST_NAME}) AS name FROM (SELECT DISTINCT host FROM a))"
        " SELECT round((began - before) / 1e6 - delay_seconds, 6) AS x FROM"
        f" (SELECT began, delay_seconds, max(ended) OVER ({before}) AS before FROM (SELECT name,"
        " epoch_us(began) AS began, epoch_us(ended) AS ended, delay_seconds FROM a JOIN n USING (host) WHERE reached))"
    )
    shorter, *others = _histogram(log, values, _MARGIN_BOUNDS)
    return [shorter._replace(name="shorter than promised"), *others]


def _bars(bounds: Sequence[float]) -> list[str]:
    return [f"up to {bound:g} s" for bound in bounds] + [f"over {bounds[-1]:g} s"]


def _histogram(log: DuckDBPyConnection, values: str, bounds: Sequence[float]) -> list[Count]:
    """How many values lie up to each bound, and above the last."""
    whens = " ".join(f"WHEN x <= {bound!r} THEN {number}" for number, bound in enumerate(bounds))
    found = rows(
        log,
        f"SELECT CASE {whens} ELSE {len(bounds)} END AS n, count(*) AS count"
        f" FROM ({values}) WHERE x IS NOT NULL GROUP BY n",
    )
    counts = {row["n"]: row["count"] for row in found}
    return [Count(name, counts.get(number, 0)) for number, name in enumerate(_bars(bounds))]


def _duplicates(log: DuckDBPyConnection) -> list[Count]:
    """Pages by what they repeat, as the log marks them; each once, as it was last."""
    found = rows(
        log,
        "WITH d AS (SELECT duplicate AS name, count(*) AS count FROM a SEMI JOIN u ON a.rowid = u.worded"
        " WHERE duplicate IS NOT NULL GROUP BY name)"
        ", n AS (SELECT 'new' AS name, (SELECT count(worded) FROM u) - coalesce(sum(count), 0)::BIGINT AS count FROM d)"
        " SELECT * FROM (FROM d UNION ALL FROM n) WHERE count > 0 ORDER BY count DESC, name",
    )
    return [Count(row["name"], row["count"]) for row in found]


def _extensions(log: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Extension against Content-Type: what an extension turns out to be tells whether it is worth asking for.

    A page counts once, by the type that it had last.
    """
    found = rows(
        log,
        f"WITH b AS (SELECT extension, coalesce(mime, '(none)') AS type, count(good) AS pages,"
        f" sum(bytes)::BIGINT AS bytes FROM a LEFT JOIN (SELECT good FROM u) ON a.rowid = good WHERE {_GOOD}"
        " GROUP BY extension, type)"
        " SELECT extension, type, pages, bytes, sum(pages) OVER (PARTITION BY extension) AS total FROM b"
        " WHERE pages > 0 ORDER BY total DESC, extension, pages DESC",
    )
    html = {
        row["extension"]: row["pages"] / int(row["total"])
        for row in found
        if row["type"] in ("text/html", "application/xhtml+xml")
    }
    for row in found:
        row["html_share"] = html.get(row["extension"], 0.0)
        row.pop("total")
    return found[: 2 * _FIRST]


def _stale_hosts(log: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Hosts of whose pages at most half were new, the smallest share first.

    A page counts once, as it was last: one that is visited again repeats nothing. New is a payload that no other page
    of the host had, on a page that is not marked as repeating another.
    """
    return rows(
        log,
        # Grouped twice: two thirds of what it takes to count distinct digests (measured).
        "WITH d AS (SELECT host, CASE WHEN duplicate IS NULL THEN digest END AS fresh, count(*) AS pages"
        " FROM a SEMI JOIN u ON a.rowid = u.worded GROUP BY host, fresh)"
        ", p AS (SELECT host, sum(pages)::BIGINT AS pages, count(fresh) AS new, new / sum(pages) AS share"
        " FROM d GROUP BY host HAVING pages >= $enough AND share <= $most"
        " ORDER BY share, pages DESC, host LIMIT $first)"
        ", b AS (SELECT host, sum(bytes)::BIGINT AS bytes FROM a SEMI JOIN p USING (host)"
        f" WHERE {_PAGE} GROUP BY host)"
        " SELECT host, pages, new, bytes, share FROM p JOIN b USING (host) ORDER BY share, pages DESC, host",
        {"enough": _ENOUGH_PAGES, "most": _MOST_NEW_SHARE, "first": _FIRST},
    )


def _by_host(log: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Hosts by their pages; errors are attempts that brought no page, or no robots.txt since there was no answer."""
    return rows(
        log,
        "WITH v AS (SELECT last FROM u WHERE answered)"
        ", p AS (SELECT host, count(*) AS pages FROM a SEMI JOIN v ON a.rowid = v.last GROUP BY host)"
        ", h AS (SELECT host, coalesce(sum(bytes), 0)::BIGINT AS bytes, min(began) AS first, max(began) AS last,"
        f" count(*) FILTER ({_FAILED} AND NOT requisite AND (status IS NULL OR NOT robots)) AS errors"
        " FROM a GROUP BY host)"
        " SELECT host, coalesce(pages, 0) AS pages, bytes, errors, strftime(first, '%Y-%m-%d') AS first,"
        " strftime(last, '%Y-%m-%d') AS last FROM h LEFT JOIN p USING (host)"
        " ORDER BY pages DESC, errors DESC, host LIMIT $most",
        {"most": _MOST_LISTED},
    )


def _failed(log: DuckDBPyConnection) -> tuple[list[dict[str, Any]], int]:
    """URLs whose last attempt failed, by host, and how many there are."""
    found = rows(
        log,
        f"WITH f AS MATERIALIZED (SELECT last, attempts FROM a JOIN u ON a.rowid = last WHERE {_FAILED})"
        f" SELECT url, status, reason, attempts, strftime(began, {_MOMENT}) AS time, (SELECT count(*) FROM f) AS in_all"
        " FROM a JOIN f ON a.rowid = last ORDER BY host, url LIMIT $most",
        {"most": _MOST_LISTED},
    )
    in_all = found[0]["in_all"] if found else 0
    return [{name: value for name, value in row.items() if name != "in_all"} for row in found], in_all


def _seeds(log: DuckDBPyConnection) -> list[SeedEnd]:
    """The seeds that were asked for, the earliest first; of one that was redirected also where that led."""
    found = rows(
        log,
        "WITH s AS (SELECT page, min(url) AS url, bool_or(seed) AS seed FROM a WHERE of_seed GROUP BY page)"
        " SELECT s.url AS url, status, reason, location, s.seed AS seed"
        " FROM s JOIN u USING (page) JOIN a ON a.rowid = u.last ORDER BY began, s.url",
    )
    ends = {row["url"]: row for row in found}
    return [_seed_end(row, ends) for row in found if row["seed"]]


def _seed_end(seed: dict[str, Any], ends: dict[str, dict[str, Any]]) -> SeedEnd:
    words, row = "", seed
    for _ in range(_MOST_REDIRECTS):
        if row["reason"] != Reason.REDIRECT or (target := ends.get(row["location"])) is None or target is row:
            break
        words, row = f"{words}redirect to {target['url']}, ", target
    if row["reason"] == Reason.REDIRECT:
        return SeedEnd(seed["url"], False, f"{words}redirect to {row['location']}")
    good = row["reason"] in ANSWERED and (row["status"] or 0) < _FIRST_ERROR
    end = row["reason"] if row["status"] in (None, 200) else f"{row['status']}, {row['reason']}"
    helps = "" if good else REMEDIES.get(row["reason"], "")
    return SeedEnd(seed["url"], good, f"{words}{end}" + (f". {helps}" if helps else ""))
