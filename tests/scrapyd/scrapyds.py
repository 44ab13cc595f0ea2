"""A scrapyd that runs, by its JSON interface."""

from __future__ import annotations

import json
from base64 import b64encode
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

DEADLINE_SECONDS = 90.0

JOB = {"project": "crawlerproject", "spider": "web"}

_open = build_opener(ProxyHandler({})).open


class Scrapyd:
    """On loopback, at this port."""

    def __init__(self, port: int, config: Path | None = None) -> None:
        """``config`` has user and password, where they are asked for, as soon as it is there."""
        self.url = f"http://127.0.0.1:{port}"
        self._config = config

    def ask(self, service: str, **fields: Any) -> dict[str, Any]:
        """POST when there is something to do, GET otherwise."""
        reading = service in ("daemonstatus", "listprojects", "listspiders", "listjobs")
        data = urlencode([(k, v) for k, vs in fields.items() for v in (vs if isinstance(vs, list) else [vs])])
        url = f"{self.url}/{service}.json" + (f"?{data}" if reading else "")
        request = Request(url, None if reading else data.encode(), self._credentials())
        with _open(request, timeout=DEADLINE_SECONDS) as answer:
            said: dict[str, Any] = json.load(answer)
        assert said["status"] == "ok", said
        return said

    def _credentials(self) -> dict[str, str]:
        if self._config is None or not self._config.exists():
            return {}
        parser = ConfigParser()
        parser.read(self._config)
        said = ":".join(parser["scrapyd"][name] for name in ("username", "password"))
        return {"Authorization": f"Basic {b64encode(said.encode()).decode()}"}

    def answers(self) -> bool:
        """Whether it listens."""
        try:
            return bool(self.ask("daemonstatus"))
        except OSError:
            return False

    def state(self, job: str) -> str:
        """pending, running, finished or gone."""
        jobs = self.ask("listjobs", project=JOB["project"])
        return next((s for s in ("pending", "running", "finished") if job in [j["id"] for j in jobs[s]]), "gone")
