"""What the page shows of one moment, as plain values: from the status, the last survey, and the last hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crawlerproject.inspection.host_table import HostRow
from crawlerproject.inspection.upload_state import upload_text, uploads_together
from crawlerproject.reasons import ANSWERED
from crawlerproject.rules.bottleneck import bound_by, load_of
from crawlerproject.watch.last_hour import Sample
from crawlerproject.watch.survey import Surveyed

# What binds a crawl, in the word that its page begins with.
_STATES = {"rests": "resting", "nothing": "idle", "start": "starting"}


def live_facts(
    status: Mapping[str, Any], run: Mapping[str, Any], surveyed: Surveyed | None, rows: Sequence[Sample]
) -> dict[str, Any]:
    """For ``/live.json``; ``run`` is how the crawl was started. Empty lists before the first second is over."""
    facts: dict[str, Any] = {**run, "columns": Sample._fields, "rows": [list(row) for row in rows]}
    if not status:
        return {**facts, "state": "starting"}
    bound = bound_by(load_of(status))
    stats = status["stats"]
    return {
        **facts,
        "time": status["time"],
        "state": "paused" if status["progress"]["paused"] else _STATES.get(bound.what, "crawling"),
        "bound": bound._asdict(),
        "progress": status["progress"],
        "totals": status["totals"],
        "pages_per_second": status["pages_per_second"],
        "bytes_per_second": status["bytes_per_second"],
        "cpu_share": status["cpu_share"],
        "lag_seconds": status["lag_seconds"],
        "machine": status["machine"],
        "build": status["build"],
        "statuses": status["statuses"],
        "short_pauses": status["short_pauses"],
        "errors": errors_by_reason(stats),
        "refused": _by_reason(stats, "refused/"),
        "hosts": hosts_by_state(status, surveyed),
        "allowed": status["progress"]["ceiling_per_second"],
        "uploads": _uploads(status),
    }


def _uploads(status: Mapping[str, Any]) -> str:
    """Where the archive goes and how far it is; empty when it stays."""
    said = status.get("uploads")
    return f"The archive goes {upload_text(uploads_together([said]), status['time'])}." if said else ""


def errors_by_reason(stats: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Attempts without an answer, the commonest first."""
    return [(reason, count) for reason, count in _by_reason(stats, "pages/") if reason not in ANSWERED]


def hosts_by_state(status: Mapping[str, Any], surveyed: Surveyed | None) -> dict[str, int]:
    """In memory as surveyed, in that of other workers as these say; on disk with work; given up or held, which may have
    left memory.
    """
    hosts = Counter(surveyed.hosts if surveyed is not None else {}) + Counter(status.get("hosts_beside", {}))
    apart = {"on-disk": status["progress"].get("hosts_on_disk", 0), "parked": status["given_up_hosts"]}
    apart |= status.get("held_hosts", {})
    return dict(hosts) | {state: max(count, hosts.get(state, 0)) for state, count in apart.items() if count}


def host_table(surveyed: Surveyed | None, order: str, most: int) -> dict[str, Any]:
    """For ``/hosts.json``: the first hosts of an order (a name of ORDERS)."""
    rows: Sequence[HostRow] = surveyed.first[order][:most] if surveyed is not None else ()
    return {
        "order": order,
        "time": surveyed.at if surveyed is not None else None,
        "of": surveyed.hosts.total() if surveyed is not None else 0,
        "hosts": [row.as_dict() for row in rows],
    }


def _by_reason(stats: Mapping[str, Any], prefix: str) -> list[tuple[str, int]]:
    found = [(key.removeprefix(prefix), count) for key, count in stats.items() if key.startswith(prefix)]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))
