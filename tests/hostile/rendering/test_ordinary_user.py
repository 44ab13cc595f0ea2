"""A crawl of an ordinary user with RENDER_SANDBOX=required: Chromium's sandbox stands, by the kernel's own word."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import SETTINGS, Asked, answer, arena
from tests.hostile.ledger import pays
from tests.hostile.rendering.confinement import Confinement, renderers
from tests.ordinary_user import as_ordinary_user
from tests.web.profiles.apps import shell
from tests.web.running import crawl_command
from tests.web.waiting import busyness, wait_until
from tests.web.zygote import Process, direct

_SECONDS = 120.0  # for a page in the browser, which waits here until it has been looked at
_SHOW = "document.getElementById('root').innerHTML = text"
_SCRIPT = f"<script>fetch('/data.json').then(r => r.text()).then(text => {{ {_SHOW} }})</script>"


def _allows_namespaces(home: Path) -> bool:
    """Whether an ordinary user may make what the sandbox is made of."""
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return False
    tried = as_ordinary_user(["unshare", "--user", "--net", "true"], home)
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def test_the_sandbox_stands_around_each_renderer() -> None:
    """While a page's script runs: a filter of system calls, namespaces of its own, an empty root, no capability."""
    looked, asked = threading.Event(), threading.Event()

    async def app(request: Asked, writer: asyncio.StreamWriter) -> None:
        if request.path == "/data.json":  # the script runs by now
            asked.set()
            await asyncio.to_thread(looked.wait, _SECONDS)
        known = {"/": answer(shell(_SCRIPT)), "/data.json": answer("<p>shown</p>" * 300, mime="text/plain")}
        writer.write(known.get(request.path) or answer("", "404 Not Found"))

    with tempfile.TemporaryDirectory() as name, arena(Path(name)) as web:  # pytest's folders are closed to other users
        home = Path(name)
        home.chmod(0o755)
        if not _allows_namespaces(home):
            pytest.skip("an ordinary user gets no user namespace here")
        (home / "seeds.txt").write_text(web.raw_site("app.test", app) + "\n")
        patience = dict.fromkeys(("RENDER_TIMEOUT_SECONDS", "RENDER_NAVIGATION_SECONDS"), f"{_SECONDS:g}")
        settings = {**SETTINGS, **patience, "RENDER": "auto", "RENDER_SANDBOX": "required"}
        command = crawl_command(home / "seeds.txt", home / "crawl", home / "hosts", settings)
        place = {"HOME": name, "TMPDIR": name, "XDG_CONFIG_HOME": name, "PYTHONDONTWRITEBYTECODE": "1"}
        with (home / "log").open("wb") as log:
            crawl = Process(as_ordinary_user(command, home), log, env=direct(**place))
            try:
                wait_until(asked.is_set, "asked for the data", process=crawl, log=home / "log")
                seen = wait_until(lambda: _all_confined(crawl.pid), "confined", process=crawl, log=home / "log")
                looked.set()
                status = crawl.wait(60 * busyness())
            finally:
                crawl.kill()
                crawl.wait()
        output = (home / "log").read_text()
        rendered = [row for row in read_log(home / "crawl" / "log") if row["reason"] == "rendered"]

    assert status == 0, output
    bare = sum(not each.stands for each in seen)
    pays("scripts that break out of Chromium's interpreter", "the machine", bare, "renderers unconfined", at_most=0)
    assert len(rendered) == 1, output
    assert "without Chromium's sandbox" not in output


def _all_confined(crawl: int) -> list[Confinement]:
    """The renderers, once none of them is still starting."""
    found = renderers(crawl)
    return found if found and all(each.seccomp and each.own for each in found) else []
