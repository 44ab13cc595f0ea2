"""The desk's pages: which address shows what, and which order is which command."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from os import fstat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup
from scrapy.settings import BaseSettings

from crawlerproject.desk import crawl_panels as panels
from crawlerproject.desk.door import Answer, Asked, refusal
from crawlerproject.errors import OperatorError, StorageError, sentence_of
from crawlerproject.inspection.crawl_progress import worker_row
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.reports.report_page import Bar, bars, line, status_words
from crawlerproject.rules.printable import human_bytes, human_seconds, moment, printable_line
from crawlerproject.watch.live import ORDERS as HOST_ORDERS
from crawlerproject.watch.live import STEP_SECONDS, Sample, errors_by_reason

if TYPE_CHECKING:
    from jinja2 import Environment

Why = Callable[[CrawlView, str], Sequence[str]]
"""What ``scrapy why`` says of a URL or a host, a line each."""

MOST_SEEDS = 500
"""Of one order (ours): they are arguments of a command; ``scrapy add --file`` has no bound."""
_MOST_LETTERS = 4_000  # of one argument
_KEPT_ORDERS = 8
_PLACE = re.compile(r"[0-9]{1,18}")
_BINS = 90  # of a chart of an hour: forty seconds each
_STATIC = {"desk.css": "text/css; charset=utf-8", "desk.js": "text/javascript; charset=utf-8"}
_HOST_ORDERS = {
    "largest": "Largest queue", "left": "Longest to go", "slowest": "Slowest", "failing": "Failing",
    "done": "Most done",
}  # fmt: skip
# Names of the views, and how often what they show is renewed, in seconds: what reads the frontier or WARC files less.
VIEWS = {
    "": ("Overview", 3), "seeds": ("Seeds", 20), "pages": ("Newest pages", 10), "hosts": ("Hosts", 20),
    "log": ("Log", 5), "files": ("Files", 0),
}  # fmt: skip
assert _HOST_ORDERS.keys() == HOST_ORDERS.keys()


class Ran(NamedTuple):
    """A command that was run for the desk: its line, when (epoch seconds), its exit status and what it printed."""

    command: str
    at: float
    status: int
    message: str


class Unfit(Exception):
    """An order that no command is run for, in one sentence."""


Run = Callable[[Path, Sequence[str]], Ran]
"""Runs ``scrapy ARGUMENTS`` on the crawl in a folder."""


def _one(form: Mapping[str, str], name: str, what: str) -> str:
    text = " ".join(form.get(name, "").split())
    if not text:
        raise Unfit(f"Say {what}.")
    if text.startswith("-") or len(text) > _MOST_LETTERS:
        raise Unfit(f"{text[:80]!r} is no {what.removeprefix('which ')}.")
    return text


def _reason(form: Mapping[str, str]) -> list[str]:
    return [f"--why={why}"] if (why := " ".join(form.get("why", "").split())[:_MOST_LETTERS]) else []


def _of_host(form: Mapping[str, str]) -> list[str]:
    return [_one(form, "host", "which host")] if form.get("host") else []


def _seeds(form: Mapping[str, str]) -> list[str]:
    lines = [line for line in form.get("seeds", "").splitlines() if line.strip()]
    if len(lines) > MOST_SEEDS:
        raise Unfit(f"At most {MOST_SEEDS} seeds at a time; scrapy add --file takes more.")
    return [_one({"seed": line}, "seed", "which URL") for line in lines] or [_one({}, "seed", "which URL")]


ORDERS: dict[str, Callable[[Mapping[str, str]], list[str]]] = {
    "pause": lambda form: [*_of_host(form), *_reason(form)],
    "resume": _of_host,
    "stop": lambda _: [],
    "add": _seeds,
    "never": lambda form: [_one(form, "host", "which host"), *(_reason(form) or [_one({}, "", "who asked, and why")])],
}
"""By the command's name its arguments, from the fields of a form."""


@cache
def templates() -> Environment:
    """Whatever is put into them is escaped, and what would move or hide text is shown."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader

    def shown(value: Any) -> Any:
        return printable_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    rooms = ChoiceLoader([PackageLoader(f"crawlerproject.{room}", "") for room in ("desk", "reports")])
    made = Environment(loader=rooms, autoescape=True, finalize=shown)
    filters: dict[str, Callable[[Any], str]] = {
        "bytes": lambda value: human_bytes(int(value or 0)), "moment": moment, "path": _segment,
        "seconds": lambda value: "–" if value is None else human_seconds(value), "count": "{:,}".format,
    }  # fmt: skip
    made.filters |= filters
    return made


def _segment(text: str) -> str:
    return quote(text, safe="")


class Desk:
    """Answers what the door lets in; ``root`` is a crawl's folder or one with such folders in it."""

    def __init__(self, root: Path, settings: BaseSettings, run: Run, why: Why) -> None:
        self.word = ""  # what the desk's own forms have in them; the door knows it
        self._root = root
        self._settings = settings
        self._run = run
        self._why = why
        self._hours = panels.Hours()
        self._pages = panels.NewestPages()
        self._ran: dict[str, deque[Ran]] = {}
        self._looking = threading.Lock()  # one look at a time: a desk takes a core at most
        self._ordering = threading.Lock()
        room = files("crawlerproject.desk")
        look = [(files("crawlerproject.reports") / name).read_bytes() for name in ("look.css", "report.css")]
        self._static = {"desk.css": b"".join([*look, (room / "desk.css").read_bytes()])}
        self._static["desk.js"] = (room / "desk.js").read_bytes()

    def answer(self, asked: Asked) -> Answer:
        """One page, file or order."""
        head, *rest = asked.path
        if asked.form is None and not rest and head in self._static:
            return Answer(self._static[head], _STATIC[head])
        if asked.form is None and asked.path == ("",):
            return self._list()
        crawls = panels.crawls_in(self._root)
        if head != "crawl" or len(rest) != 2 or rest[0] not in crawls:
            return refusal(404, "There is no such page.")
        name, view = rest
        try:
            if asked.form is not None:
                return self._order(name, crawls[name], view, asked.form)
            with self._looking:
                return self._shown(name, panels.view_of(self._settings, crawls[name]), view, asked.query)
        except (OperatorError, StorageError, OSError) as error:
            return self._page("trouble", f"{name}", name=name, view=view, views=VIEWS, message=sentence_of(error))

    def sample(self) -> None:
        """A row for the charts of crawls that were looked at; again each STEP_SECONDS."""
        while True:
            time.sleep(STEP_SECONDS)
            for folder in self._hours.folders:
                try:
                    with self._looking:
                        self._hours.look(panels.view_of(self._settings, folder))
                except (OperatorError, StorageError, OSError):
                    continue

    # --- pages ------------------------------------------------------------------------------------

    def _page(self, template: str, title: str, status: int = 200, **values: Any) -> Answer:
        text = (
            templates()
            .get_template("desk.html")
            .render(what=template, title=title, word=self.word, root=str(self._root), **values)
        )
        return Answer(text.encode("utf-8", "replace"), status=status)

    def _list(self) -> Answer:
        rows = []
        for name, folder in panels.crawls_in(self._root).items():
            try:
                crawl = panels.view_of(self._settings, folder)
            except (OperatorError, StorageError, OSError) as error:
                rows.append({"name": name, "life": panels.Life("unreadable", "bad", sentence_of(error))})
                continue
            rows.append({"name": name, "life": panels.life(crawl), **_figures(crawl)})
        return self._page("list", "Crawls", rows=rows)

    def _shown(self, name: str, crawl: CrawlView, view: str, query: Mapping[str, str]) -> Answer:
        if view == "picture":
            return _picture(crawl, query)
        if view == "file":
            return _file(crawl, query)
        found = self._found(crawl, view, query)
        if found is None:
            return refusal(404, "There is no such page.")
        title, renew = VIEWS.get(view, ("Why", 0))
        return self._page(
            view or "overview", f"{title} · {name}", name=name, view=view, views=VIEWS, life=panels.life(crawl),
            renew=renew, ran=list(self._ran.get(name, ())), pauses=crawl.pauses, running=crawl.running, **found,
        )  # fmt: skip

    def _found(self, crawl: CrawlView, view: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        if view == "":
            return _figures(crawl) | _charts(crawl, self._hours.look(crawl).since(0.0, crawl.now))
        if view == "seeds":
            first = _number(query.get("from", "")) or 0
            seeds, more = panels.seeds(crawl, first)
            return {"seeds": seeds, "first": first, "next": first + panels.SEEDS_A_PAGE if more else None}
        if view == "pages":
            return {"pages": self._pages.of(crawl), "urlencode": urlencode}
        if view == "hosts":
            by = query.get("by", "")
            by = by if by in _HOST_ORDERS else "largest"
            return {"hosts": panels.hosts(crawl, by), "by": by, "orders": _HOST_ORDERS}
        if view == "log":
            logs = panels.text_logs(crawl)
            chosen = query.get("of", "")
            lines = panels.tail(logs[chosen]) if chosen in logs else []
            return {"logs": list(logs), "chosen": chosen, "lines": lines, "requests": panels.requests(crawl)}
        if view == "files":
            rows = [(name, path.stat()) for name, path in panels.downloads(crawl).items() if path.exists()]
            return {"files": [(name, found.st_size, found.st_mtime) for name, found in rows], "urlencode": urlencode}
        if view == "why":
            asked = query.get("q", "").strip()[:_MOST_LETTERS]
            return {"asked": asked, "lines": self._why(crawl, asked) if asked else [], "of_host": "/" not in asked}
        return None

    # --- orders -----------------------------------------------------------------------------------

    def _order(self, name: str, folder: Path, order: str, form: Mapping[str, str]) -> Answer:
        if order not in ORDERS:
            return refusal(404, "There is no such order.")
        try:
            arguments = [order, *ORDERS[order](form)]
        except Unfit as unfit:
            ran = Ran(f"scrapy {order}", time.time(), 2, str(unfit))
        else:
            with self._ordering:
                ran = self._run(folder, arguments)
        self._ran.setdefault(name, deque(maxlen=_KEPT_ORDERS)).appendleft(ran)
        return Answer(status=303, headers={"Location": f"/crawl/{_segment(name)}/"})


def _figures(crawl: CrawlView) -> dict[str, Any]:
    status = crawl.status
    progress, totals = status.get("progress", {}), status.get("totals") or {}
    statuses = [worker.status for worker in crawl.workers if worker.running] or [status]
    return {
        "pages": totals.get("pages", progress.get("pages", 0)),
        "bytes": totals.get("bytes", progress.get("bytes", 0)),
        "errors": totals.get("errors", progress.get("errors", 0)),
        "queued": progress.get("queued_urls", 0),
        "eta": progress.get("eta_seconds") if crawl.running else None,
        "rate": status.get("pages_per_second", 0.0) if crawl.running else 0.0,
        "byte_rate": status.get("bytes_per_second", 0.0) if crawl.running else 0.0,
        "allowed": progress.get("ceiling_per_second") if crawl.running else None,
        "silent_seconds": max(crawl.now - one.get("time", crawl.now) for one in statuses) if crawl.running else None,
        "workers": [worker_row(worker, crawl.now) for worker in crawl.workers],
    }


def _charts(crawl: CrawlView, rows: Sequence[Sample]) -> dict[str, Any]:
    """Charts with a unit at every mark, and the counts of bars beside them as numbers."""
    statuses = [worker.status for worker in crawl.workers if worker.status] or [crawl.status]
    stats, answers = Counter[str](), Counter[str]()
    for status in statuses:
        stats.update(status.get("stats", {}))
        answers.update(status.get("statuses", {}))
    errors = errors_by_reason(stats)[:8]
    progress = crawl.status.get("progress", {}) if crawl.running else {}
    states = [(word, progress.get(f"hosts_{name}") or 0) for name, word in _STATES.items()]
    live_port = crawl.run.get("settings", {}).get("WATCH_PORT") if crawl.running else 0
    charts = []
    if rows:
        ends = (f"{human_seconds(rows[-1].at - rows[0].at + rows[0].seconds)} ago", "now")
        charts = [
            ("Pages a second", line("Pages a second", ends, _binned(rows, "pages"), "{:g} pages/s".format)),
            ("Bytes a second", line("Bytes a second", ends, _binned(rows, "bytes"), _byte_rate, whole=True)),
            ("Queued URLs", line("Queued URLs", ends, _binned(rows, "queued"), "{:,.0f} URLs".format, whole=True)),
        ]
    return {
        "charts": charts,
        "states": _bars((word, count, "") for word, count in states if count),
        "errors_by_reason": _bars((reason, count, "") for reason, count in errors),
        "answers": _bars((status_words(code), count, f"c{code[0]}") for code, count in answers.most_common(8)),
        "live_port": live_port,
    }


# Hosts by what they do, as the status has them.
_STATES = {
    "in_flight": "being asked", "ready": "may be asked", "waiting": "keep their pause",
    "in_line": "wait for their address", "looked_up": "wait for the DNS", "resting": "rest", "on_disk": "wait on disk",
}  # fmt: skip


def _bars(counts: Iterable[tuple[str, int, str]]) -> Markup | None:
    rows = [Bar(name, count, f"{count:,}", kind) for name, count, kind in counts]
    return bars(rows) if rows else None


def _byte_rate(value: float) -> str:
    return f"{human_bytes(round(value))}/s"


def _binned(rows: Sequence[Sample], name: str) -> list[float]:
    """Means over equal intervals; one without a row is like the one before it."""
    began, ended = rows[0].at - rows[0].seconds, rows[-1].at
    many = max(2, min(_BINS, len(rows)))
    sums, weights = [0.0] * many, [0.0] * many
    for row in rows:
        place = min(many - 1, int((row.at - row.seconds / 2 - began) / (ended - began) * many))
        sums[place] += getattr(row, name) * row.seconds
        weights[place] += row.seconds
    values: list[float] = []
    for total, weight in zip(sums, weights, strict=True):
        values.append(total / weight if weight else values[-1] if values else 0.0)
    return values


def _number(text: str) -> int | None:
    """A place in a list or a file; None for any other text."""
    return int(text) if _PLACE.fullmatch(text) else None


def _picture(crawl: CrawlView, query: Mapping[str, str]) -> Answer:
    at = _number(query.get("at", ""))
    found = panels.picture(crawl.folders, query.get("warc", ""), at) if at is not None else None
    return Answer(found, "image/png") if found is not None else refusal(404, "There is no such picture.")


def _file(crawl: CrawlView, query: Mapping[str, str]) -> Answer:
    path = panels.downloads(crawl).get(query.get("of", ""))
    if path is None or not path.resolve().is_relative_to(crawl.folder.resolve()):
        return refusal(404, "There is no such file.")
    descriptor = panels.opened(path)
    disposition = f"attachment; filename*=UTF-8''{_segment(path.name)}"
    return Answer(
        kind="application/octet-stream", headers={"Content-Disposition": disposition},
        file=descriptor, length=fstat(descriptor).st_size,
    )  # fmt: skip
