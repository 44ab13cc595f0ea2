"""A whole crawl tells its operator's command and URL what becomes of it, and a broken hook changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.commands.crawled import ask
from tests.crawls.operator.spoken_to import chain, crawling, log_of, moved_on
from tests.crawls.operator.test_resume import run
from tests.hooks.test_hook_events import Listener, listener  # noqa: F401  # a fixture
from tests.hostile.arena import arena
from tests.web.waiting import wait_until


def told(path: Path) -> list[dict[str, Any]]:
    """The events that the command has had."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_pause_end_and_refusal_are_told(tmp_path: Path, listener: Listener) -> None:  # noqa: F811
    """To both, in order, with counts; the end before the process exits; a refused start as well."""
    script = tmp_path / "hook.py"
    script.write_text("import sys\nopen(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')\n")
    hook = {
        "HOOK_COMMAND": f"{sys.executable} {script} {tmp_path / 'told'}", "HOOK_URL": listener.url,
        "HOOK_SILENT_SECONDS": "600",
    }  # fmt: skip
    with arena(tmp_path) as web:
        folder = tmp_path / "crawl"
        one = chain(web, "one.test", 3000)
        with crawling(web, "-a", f"seeds={one}", settings=hook) as process:
            moved_on(web, "one.test")
            ask(folder, "pause", "--why", "a look at the disk")
            wait_until(lambda: len(told(tmp_path / "told")) == 1, "the pause is told", seconds=20)
            ask(folder, "resume")
            ask(folder, "pause", "one.test")  # the only host: nothing is left to do, and the crawl ends
            assert process.wait(timeout=60) == 0
        refused = run(web, "web", "-a", "scope=host", **hook)
        unheard = run(web, "web", "-a", "max_pages=1", HOOK_COMMAND="/bin/false", HOOK_URL="")

    events = told(tmp_path / "told")
    names = [event["event"] for event in events]
    assert names[:3] == ["paused", "resumed", "ended"]
    assert names[3:] == ["refused"]
    assert "by the operator, since" in events[0]["reason"]
    assert "a look at the disk" in events[0]["reason"]
    assert events[2]["reason"] == "finished"
    assert events[2]["counts"]["pages"] >= 3
    assert events[2]["counts"]["queued_urls"] == 0
    assert events[2]["crawl"] == str(folder.resolve())
    assert refused.returncode == 2
    assert "scope is 'any'" in events[3]["reason"]
    assert [said for _, said in listener.got] == events
    assert unheard.returncode == 0, unheard.stderr[-2000:]
    assert "HOOK_COMMAND on ended failed 3 times and is given up." in unheard.stderr
    assert "Traceback" not in log_of(web) + unheard.stderr
