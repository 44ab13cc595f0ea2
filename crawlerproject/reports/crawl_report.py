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

_ROBOTS = "rtrim(coalesce(hop, ''), 'R') LIKE '%P'"
# What a page needs to be seen, and what it asked for in the browser: no pages, as the limits of a crawl count them.
_REQUISITE = "rtrim(coalesce(hop, ''), 'R') LIKE '%E'"
_HOST_NAME = "regexp_replace(host, ':[0-9]*$', '')"  # the ports of one name are one host
_ANSWERED = ", ".join(f"'{reason}'" for reason in sorted(ANSWERED))
_FAILED = f"(status >= 400 OR status IS NULL AND reason NOT IN ({_ANSWERED}))"
# Of each page its last attempt; not ``arg_max``, which passes over nulls.
_LAST = (
    "url, any_value(host) AS host, count(*) AS attempts, max(time) AS time,"
    " bool_or(coalesce(hop, '') = '') AS seed, bool_or(rtrim(coalesce(hop, ''), 'R') = '') AS of_seed,"
    " arg_max_null(status, time) AS status, arg_max_null(reason, time) AS reason,"
    " arg_max_null(location, time) AS location"
)
# What no figure is made of is not read: a third of a log.
_ASKED = (
    'time, "end", url, status, reason, host, ip, hop, mime, bytes, location, ttfb_seconds, delay_seconds, digest,'
    " rendered, duplicate"
)
_MARKED = f"{_ROBOTS} AS robots, {_REQUISITE} AS requisite"
# A page's words were archived: those of its answer, or of what a browser made of it, which has no status of its own.
_PAGE = "(status = 200 OR rendered) AND NOT robots AND NOT requisite AND digest IS NOT NULL"
_OF_PAGES = "status IS NOT NULL AND NOT robots AND NOT requisite"
_PAGES = f"count(*) FILTER ({_OF_PAGES}) AS pages"
# The extension of the last path segment, lower-case; '' when it has none.
_EXTENSION = "lower(regexp_extract(url, '^[a-z]+://[^/?#]*/[^?#]*[.]([A-Za-z0-9]{1,8})(?:[?#]|$)', 1))"


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
        log.execute(f"CREATE TEMP TABLE a AS SELECT {_ASKED}, {_MARKED}, {_EXTENSION} AS extension FROM log")
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
        log.execute(f"CREATE TEMP TABLE last AS SELECT {_LAST} FROM a WHERE NOT robots AND NOT requisite GROUP BY url")
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
        asked = f"SELECT url, min(time) AS first FROM (SELECT *, {_MARKED} FROM log) WHERE coalesce(hop, '') = ''"
        return [row["url"] for row in rows(log, f"{asked} AND NOT robots GROUP BY url ORDER BY first, url")]


def listed(seeds: Sequence[SeedEnd]) -> list[SeedEnd]:
    """The first so many, those that were not fetched before the others."""
    return sorted(seeds, key=lambda seed: seed.good)[:_MOST_LISTED]


def _totals(log: DuckDBPyConnection) -> CrawlReport:
    (row,) = rows(
        log,
        f"SELECT count(*) AS attempts, count(DISTINCT url) FILTER ({_OF_PAGES}) AS pages,"
        f" count(*) FILTER ({_OF_PAGES}) AS visits, count(*) FILTER (status IS NOT NULL AND requisite) AS requisites,"
        " coalesce(sum(bytes), 0)::BIGINT AS bytes, count(DISTINCT host) AS hosts, min(time) AS began,"
        ' max("end") AS ended, count(*) FILTER (rendered) AS rendered FROM a',
    )
    return CrawlReport(**{**row, "began": row["began"] or "", "ended": row["ended"] or ""})


def _over_time(log: DuckDBPyConnection) -> tuple[list[Interval], float]:
    """Moments and how long each is, seconds."""
    (span,) = rows(
        log, "SELECT epoch(max(CAST(time AS TIMESTAMPTZ))) - epoch(min(CAST(time AS TIMESTAMPTZ))) AS s FROM a"
    )
    points = max(_LEAST_POINTS, min(_MOST_POINTS, int(span["s"] / _LEAST_SECONDS)))
    found = rows(
        log,
        "WITH t AS (SELECT epoch(CAST(time AS TIMESTAMPTZ)) AS moment, * FROM a),"
        " w AS (SELECT min(moment) AS first, greatest((max(moment) - min(moment)) / $points, 0.001) AS width FROM t),"
        " b AS (SELECT least(CAST(floor((moment - first) / width) AS INTEGER), $points - 1) AS n,"
        f" {_PAGES}, sum(bytes)::BIGINT AS bytes,"
        " count(*) FILTER (rendered) AS rendered FROM t, w GROUP BY n)"
        " SELECT strftime(to_timestamp(first + i.n * width) AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S') AS time,"
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
    before = "PARTITION BY name ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    values = (
        "SELECT round(round(epoch(CAST(time AS TIMESTAMPTZ)) - epoch(CAST(before AS TIMESTAMPTZ)), 6)"
        f' - delay_seconds, 6) AS x FROM (SELECT time, delay_seconds, max("end") OVER ({before}) AS before FROM ('
        f'SELECT {_HOST_NAME} AS name, time, "end", delay_seconds FROM a WHERE ip IS NOT NULL))'
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
    if "duplicate" not in [row["column_name"] for row in rows(log, "DESCRIBE a")]:
        return []
    found = rows(
        log,
        "WITH p AS (SELECT arg_max_null(duplicate, time) AS duplicate FROM a"
        f" WHERE {_PAGE} GROUP BY url) SELECT coalesce(duplicate, 'new') AS name, count(*) AS count FROM p"
        " GROUP BY name ORDER BY count DESC, name",
    )
    return [Count(row["name"], row["count"]) for row in found]


def _extensions(log: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Extension against Content-Type: what an extension turns out to be tells whether it is worth asking for."""
    found = rows(
        log,
        "SELECT extension, coalesce(mime, '(none)') AS type, count(DISTINCT url) AS pages, sum(bytes)::BIGINT AS bytes,"
        " sum(count(DISTINCT url)) OVER (PARTITION BY extension) AS total"
        " FROM a WHERE status = 200 AND NOT robots AND NOT requisite"
        " GROUP BY extension, type ORDER BY total DESC, extension, pages DESC",
    )
    html = {
        row["extension"]: row["pages"] / row["total"]
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
    columns = [row["column_name"] for row in rows(log, "DESCRIBE a")]
    # Not arg_max, which passes over nulls: a page that repeated another once need not do so still.
    repeats = "arg_max_null(duplicate, time) IS NOT NULL" if "duplicate" in columns else "false"
    return rows(
        log,
        f"WITH p AS (SELECT host, url, arg_max(digest, time) AS digest, sum(bytes)::BIGINT AS bytes,"
        f" {repeats} AS repeats FROM a WHERE {_PAGE} GROUP BY host, url)"
        " SELECT host, count(*) AS pages, count(DISTINCT digest) FILTER (NOT repeats) AS new,"
        " sum(bytes)::BIGINT AS bytes, new / pages AS share FROM p GROUP BY host"
        " HAVING pages >= $enough AND share <= $most ORDER BY share, pages DESC, host LIMIT $first",
        {"enough": _ENOUGH_PAGES, "most": _MOST_NEW_SHARE, "first": _FIRST},
    )


def _by_host(log: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Hosts by their pages; errors are attempts that brought no page, or no robots.txt since there was no answer."""
    return rows(
        log,
        f"SELECT host, count(DISTINCT url) FILTER ({_OF_PAGES}) AS pages, coalesce(sum(bytes), 0)::BIGINT AS bytes,"
        f" count(*) FILTER ({_FAILED} AND NOT requisite AND (status IS NULL OR NOT robots)) AS errors,"
        " min(time)[:10] AS first, max(time)[:10] AS last"
        " FROM a GROUP BY host ORDER BY pages DESC, errors DESC, host LIMIT $most",
        {"most": _MOST_LISTED},
    )


def _failed(log: DuckDBPyConnection) -> tuple[list[dict[str, Any]], int]:
    """URLs whose last attempt failed, by host, and how many there are."""
    found = rows(
        log,
        "SELECT url, status, reason, attempts, time, count(*) OVER () AS in_all FROM last"
        f" WHERE {_FAILED} ORDER BY host, url LIMIT $most",
        {"most": _MOST_LISTED},
    )
    in_all = found[0]["in_all"] if found else 0
    return [{name: value for name, value in row.items() if name != "in_all"} for row in found], in_all


def _seeds(log: DuckDBPyConnection) -> list[SeedEnd]:
    """The seeds that were asked for, the earliest first; of one that was redirected also where that led."""
    found = rows(log, "SELECT url, status, reason, location, seed FROM last WHERE of_seed ORDER BY time, url")
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
