"""``scrapy why``: the present state of a URL or a host, and the reason."""

from __future__ import annotations

import argparse
import re
from datetime import datetime
from typing import Any

from crawlerproject.config.values import identity
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import ArchivedPage, archived_notes
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.explanation import Via
from crawlerproject.inspection.url_state import Fact, State, UrlState, for_programs, sentences
from crawlerproject.operator_command import InspectCommand, one_argument, option
from crawlerproject.rules.url.urls import UrlRefused, host_key, parse
from crawlerproject.stores.logs.log_query import attempts
from crawlerproject.stores.operator_files.watched_lists import withdrawn_of
from crawlerproject.stores.protocols import PageRecord
from crawlerproject.terminal import say_either

# Lines of a capture's metadata record that say why it was treated as it was, and no log line has.
_NOTES = ("challenge", "wall-marks")


class Command(InspectCommand):
    """Works while the crawl runs, and after."""

    arguments = "URL|HOST [--via PAGE] [--json]"
    summary = "Why a URL or a host is in the state it is in"

    example = "scrapy why https://example.org/page"

    options = (option("--via", metavar="PAGE", help="ask as a link of this page, which the crawl has fetched"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        text = one_argument(args, "a URL or a host", self.example)
        found = found_of(self.look(), text, opts.via)
        say_either(plain(found), lines(found), as_json=opts.json)


# A name with a dot, an IPv6 address or a name with a port: what may be a host although the crawl has not met it.
_HOST = re.compile(r"[^\s,;]+[.:][^\s,;]+")
Found = UrlState | dict[str, Any]
"""The answer about a URL, or the facts on a host."""


def found_of(crawl: CrawlView, text: str, page: str | None = None) -> Found:
    """The answer on a URL, as a link of ``page`` if one is given, or on a host. Raises OperatorError."""
    with crawl.store() as store:
        why = crawl.why(store)
        if "/" not in text and not text.startswith(("mailto:", "javascript:", "data:", "tel:")):
            facts = why.host(text.lower())
            if facts["state"] == "never-seen" and not _HOST.fullmatch(text):
                raise OperatorError(
                    f"{text} is no URL and no host that the crawl knows; give https://example.org/page or example.org."
                )
            return facts
        via = _via(crawl, page, text) if page else None
        found = why.url(text, via)
        if found.state is State.NEVER_SEEN and (last := _embed(crawl, found.url)):
            at = datetime.fromisoformat(last["time"]).timestamp()
            found = why.embedded(PageRecord(found.url, last["reason"], last["status"] or 0, at), last["via"])
    _add_log(crawl, found)
    if (asked_back := withdrawn_of(crawl.folder).of(found.url)) is not None:
        state, day, reason = asked_back.state, asked_back.day, asked_back.why
        found.facts["withdrawn"] = Fact(f"{state} {day}, {reason}", withdrawn=state, withdrawn_on=day)
    return found


def plain(found: Found) -> dict[str, Any]:
    """For programs."""
    return found.as_dict() if isinstance(found, UrlState) else for_programs(found)


def lines(found: Found) -> list[str]:
    """For people: what was asked about, its state, and a fact a line."""
    return sentences(found) if isinstance(found, UrlState) else _host_lines(found)


def _host_lines(facts: dict[str, object]) -> list[str]:
    lines = [str(facts["host"]), f"  {facts['state']}"]
    for name, value in facts.items():
        if name not in ("host", "state") and value is not None:
            unit = " s" if name.endswith("_seconds") else ""
            lines.append(f"  {name.removesuffix('_seconds').replace('_', ' ')}: {value}{unit}")
    return lines


def _via(crawl: CrawlView, page: str, target: str) -> Via:
    """What the log and the archive say of the page on which the link stands."""
    try:
        url, key = parse(page).url, parse(target).key
    except UrlRefused as refused:
        raise OperatorError(f"--via needs two absolute URLs ({refused.reason}).") from None
    rows = attempts(crawl.logs, url=url, host=host_key(url))
    if not rows:
        raise OperatorError(f"{url} is not in the request log: the crawl has not fetched it.")
    last = rows[-1]
    token = identity(crawl.settings).token
    # One of several workers' folders has the file.
    nofollow = any(ArchivedPage(folder.warc, last, token).asks_not_to_follow(key) for folder in crawl.folders)
    return Via(url, int(last["depth"] or 0), nofollow)


def _embed(crawl: CrawlView, url: str) -> dict[str, Any] | None:
    """The last attempt, if a page in the browser wanted the URL."""
    rows = attempts(crawl.logs, url=url, host=host_key(url))
    return rows[-1] if rows and rows[-1]["hop"] == "E" else None


def _add_log(crawl: CrawlView, found: UrlState) -> None:
    """The last attempts and the capture, from the request log."""
    host = host_key(found.url)
    if found.state is State.NEVER_SEEN or not host:
        return
    rows = attempts(crawl.logs, url=found.url, host=host)
    waits_for_host = not rows and found.state is State.WAITING and found.reason  # the host's trouble, not the page's
    if waits_for_host and (of_host := attempts(crawl.logs, host=host)):
        last = of_host[-1]
        text = f"{last['time']} {last['url']} {last['reason']}" + _error(last)
        found.facts["last_of_host"] = Fact(text, **_attempt("last_of_host", last), last_of_host_url=last["url"])
    if not rows:
        return
    last = rows[-1]
    found.facts["attempts"] = len(rows)
    text = f"{last['time']} {last['reason']}" + _error(last)
    found.facts["last_attempt"] = Fact(text, **_attempt("last_attempt", last))
    if last["location"]:
        found.facts["location"] = last["location"]
    captured = [row for row in rows if row["warc"]]
    if captured:
        capture = captured[-1]
        place = {name: capture[name] for name in ("warc", "offset", "length")}
        text = f"{place['warc']} at byte {place['offset']}, {place['length']} bytes"
        found.facts["capture"] = Fact(text, **place)
        noted = (archived_notes(folder.warc, capture) for folder in crawl.folders)
        notes = next(filter(None, noted), {})  # one of several workers' folders has the file
        found.facts |= {name.replace("-", "_"): notes[name] for name in _NOTES if name in notes}


def _attempt(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A line of the request log for programs."""
    values = (row["time"], row["reason"], row["status"], row["error"] or None)
    return {f"{name}_{part}": value for part, value in zip(("at", "reason", "status", "error"), values, strict=True)}


def _error(attempt: dict[str, Any]) -> str:
    return f": {attempt['error']}" if attempt["error"] else ""
