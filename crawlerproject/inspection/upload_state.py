"""How far an archive is on its way to ARCHIVE_URL, as the processes that send it said last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crawlerproject.rules.readable import human_bytes, human_seconds
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts

_SUMS = ("waiting_files", "waiting_bytes", "sent_files", "sent_bytes", "sent_again", "removed_files", "only_there")


def uploads_of(folders: Iterable[CrawlDir]) -> dict[str, Any]:
    """Of all folders of a crawl together; empty when nothing of it ever went anywhere."""
    return uploads_together([state for folder in folders if (state := read_facts(folder.upload_state))])


def uploads_together(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums; of what is refused the longest."""
    if not states:
        return {}
    refused = [state for state in states if state.get("error")]
    worst = min(refused, key=lambda state: state.get("failing_since") or 0.0, default=None)
    return {
        "time": min((state["time"] for state in states if "time" in state), default=None),
        "url": min((str(state.get("url", "")) for state in states), key=len),
        **{name: sum(state.get(name) or 0 for state in states) for name in _SUMS},
        "error": worst["error"] if worst else "",
        "failing_since": worst.get("failing_since") if worst else None,
        "next_try": worst.get("next_try") if worst else None,
        "problems": [problem for state in states for problem in state.get("problems", [])],
    }


def upload_text(uploads: Mapping[str, Any], now: float) -> str:
    """One line; ``now`` in epoch seconds."""
    if not uploads:
        return ""
    waiting = f"{uploads['waiting_files']:,} files ({human_bytes(int(uploads['waiting_bytes']))}) wait"
    done = f"{uploads['sent_files']:,} files ({human_bytes(int(uploads['sent_bytes']))}) sent since its start"
    only = f", {uploads['only_there']:,} are only there" if uploads["only_there"] else ""
    text = f"to {uploads['url']}: {waiting}, {done}{only}"
    if uploads["error"]:
        since = human_seconds(max(0.0, now - uploads["failing_since"])) if uploads["failing_since"] else ""
        text += f"; refused{f' for {since}' if since else ''}: {uploads['error']}"
    return text
