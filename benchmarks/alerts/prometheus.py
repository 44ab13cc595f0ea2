"""A real Prometheus, and which alerts it has firing."""

from __future__ import annotations

import contextlib
import json
import math
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from benchmarks.alerts.crawl import WatchedCrawl
from tests.web.ports import free_port
from tests.web.running import PROJECT
from tests.web.waiting import wait_until

RULES = PROJECT / "deploy" / "prometheus" / "alerts.yml"
PROGRAM = PROJECT / "build" / "prometheus" / "usr" / "bin" / "prometheus"
_SHORT_WINDOW, _SHORT_WAIT = "20s", "10s"
_DAY_AHEAD, _AHEAD = ", 86400)", ", 80)"  # a day is four times the window of six hours
_PAUSE_SECONDS = 3.0  # between two runs of scrapy status, which import Scrapy each
_HOUR_SECONDS = "3600"  # as a threshold
# Between two moments for which an expression is asked, and how many of these at most.
_STEP_SECONDS, _STEPS = 1, 100
_ANSWER_SECONDS = 60  # a machine that has thirty crawls to do answers late
_open = build_opener(ProxyHandler({})).open


def shortened(rules: str) -> str:
    """The rules with windows and waits of seconds, and what is compared with an hour or a day as short as those."""
    rules = re.sub(r"\[\d+[mh]\]", f"[{_SHORT_WINDOW}]", rules)
    rules = rules.replace(_DAY_AHEAD, _AHEAD)
    rules = re.sub(rf"> {_HOUR_SECONDS}\b", "> 20", rules)
    return re.sub(r"for: [1-9]\d*[mh]", f"for: {_SHORT_WAIT}", rules)


class Prometheus:
    """Looks at each crawl every two seconds."""

    def __init__(self, url: str, instances: Mapping[str, str]) -> None:
        self.url = url
        self._instances = instances  # address -> crawl
        self._began = time.time()

    def firing(self) -> set[tuple[str, str]]:
        """Crawl and alert, of all that fire now."""
        return {
            (
                self._instances.get(alert["labels"].get("instance")) or alert["labels"]["crawl"],
                alert["labels"]["alertname"],
            )
            for alert in self._asked("alerts")["alerts"]
            if alert["state"] == "firing"
        }

    def answers(self) -> bool:
        """Whether it is up."""
        with contextlib.suppress(OSError):
            return bool(self._asked("alerts"))
        return False

    def numbers(self, expression: str) -> list[float]:
        """All that the expression was at any time of the watch; what is no number (0 of 0) is left out."""
        now = time.time()
        times = {"start": self._began, "end": now, "step": max(_STEP_SECONDS, (now - self._began) / _STEPS)}
        series = self._asked("query_range", query=expression, **times)["result"]
        values = [float(value) for one in series for _, value in one["values"]]
        return [value for value in values if math.isfinite(value)]

    def names(self, begin: str) -> list[str]:
        """Of the metrics that were seen, those that begin so."""
        found: list[str] = self._asked("label/__name__/values")
        return [name for name in found if name.startswith(begin)]

    def _asked(self, what: str, **given: object) -> Any:
        with _open(f"{self.url}/api/v1/{what}?{urlencode(given)}", timeout=_ANSWER_SECONDS) as answer:
            return json.load(answer)["data"]


@contextlib.contextmanager
def prometheus(folder: Path, crawls: Mapping[str, WatchedCrawl]) -> Iterator[Prometheus]:
    """It watches these crawls."""
    (folder / "alerts.yml").write_text(shortened(RULES.read_text()))
    address = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:
        instances = {}
        for name, crawl in crawls.items():
            port = stack.enter_context(_by_command(crawl)) if crawl.way.metrics_command else crawl.port
            instances[f"127.0.0.1:{port}"] = name
        (folder / "prometheus.yml").write_text(json.dumps(_config(instances)))  # JSON is YAML
        command = [
            *(str(PROGRAM), "--config.file=prometheus.yml", f"--web.listen-address={address}"),
            "--storage.tsdb.path=tsdb",
        ]
        output = stack.enter_context((folder / "prometheus.log").open("wb"))
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        stack.callback(process.wait)
        stack.callback(process.kill)
        watching = Prometheus(f"http://{address}", instances)
        wait_until(watching.answers, "Prometheus", process=process, log=folder / "prometheus.log")
        yield watching


def _config(instances: Mapping[str, str]) -> dict[str, Any]:
    targets = [{"targets": [address], "labels": {"crawl": name}} for address, name in instances.items()]
    return {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s", "scrape_timeout": "2s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [{"job_name": "crawler", "static_configs": targets}],
    }


@contextlib.contextmanager
def _by_command(crawl: WatchedCrawl) -> Iterator[int]:
    """A port at which lies what ``scrapy status --metrics`` said last, as node_exporter's textfile collector has it."""
    said = [b""]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said[0])

        def log_message(self, *_: object) -> None:
            """Nothing."""

    def ask() -> None:
        while True:
            said[0] = crawl.ask("status", "--metrics").encode() or said[0]
            time.sleep(_PAUSE_SECONDS)

    server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    for work in (server.serve_forever, ask):
        Thread(target=work, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
