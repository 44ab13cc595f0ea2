"""A real Prometheus watches real crawls of loopback while troubles are made: which alerts fire, and which stay silent.

``make alerts`` unpacks Debian's Prometheus; then ``python -m benchmarks.alerts``. The rules are those of
deploy/prometheus with their windows and waits shortened to seconds, and nothing else about them changed. Whatever alert
is provoked and does not fire makes the exit status 1; those that nothing here provokes are listed as such.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from tests.web.ports import free_port
from tests.web.running import PROJECT, crawl_command, one_pace, start, wait_for
from tests.web.zygote import Process

RULES = PROJECT / "deploy" / "prometheus" / "alerts.yml"
PROMETHEUS = PROJECT / "build" / "prometheus" / "usr" / "bin" / "prometheus"
_DEADLINE_SECONDS = 150.0
_SITES = 8  # of each crawl
_SHORT = "20s"  # stands for every window of a rate
_open = build_opener(ProxyHandler({})).open

#: Hosts that fail are asked again soon and for as long as the troubles last.
_STAYING = {
    "BACKOFF_START_SECONDS": "4",
    "BACKOFF_MAX_SECONDS": "8",
    "HOST_MAX_FAILURES": "1000",
    "RENDER": "never",
}
#: Crawl -> what its sites answer to robots.txt and to pages, its own settings, and the alerts that it is to raise.
TROUBLES: dict[str, tuple[int, int, dict[str, str], set[str]]] = {
    "fine": (404, 200, {}, set()),
    "failing": (404, 503, {}, {"CrawlerServersFail", "CrawlerMostHostsRest"}),
    "unwelcome": (404, 403, {}, {"CrawlerNotWelcome"}),
    "robots": (503, 200, {}, {"CrawlerRobotsUnreachable"}),
    "full": (404, 200, {"DISK_MIN_FREE_BYTES": str(10**15)}, {"CrawlerDiskNearlyFull", "CrawlerPaused"}),
    "stopped": (404, 200, {}, {"CrawlerDown"}),
}


class _Sites(BaseHTTPRequestHandler):
    """Answers as the crawl's name, the first word of the host's, says; its pages have links without end."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        robots, page, _, _ = TROUBLES[self.headers["Host"].partition("-")[0]]
        status = robots if self.path == "/robots.txt" else 200 if self.path == "/" else page
        links = 200 if self.path == "/" else 3  # a crawl whose pages are refused goes on by these
        body = "".join(f'<p><a href="/{time.monotonic_ns()}{n}">a page</a>' for n in range(links)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the request logs have it."""


def shortened(rules: str) -> str:
    """The rules with windows and waits of seconds."""
    rules = re.sub(r"\[\d+[mh]\]", f"[{_SHORT}]", rules)
    return re.sub(r"for: [1-9]\d*[mh]", "for: 10s", rules)


@contextlib.contextmanager
def serving() -> Iterator[int]:
    """The port at which every site answers, each at a loopback address of its own."""
    port, servers = free_port(), []
    for number in range(_SITES):
        servers.append(ThreadingHTTPServer((f"127.0.0.{number + 2}", port), _Sites))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
    yield port
    for server in servers:
        server.shutdown()


@contextlib.contextmanager
def crawling(folder: Path, name: str, server_port: int, watch_port: int) -> Iterator[Process]:
    """One crawl of its own sites."""
    names = [f"{name}-{number}.test" for number in range(_SITES)]
    (folder / f"{name}.hosts").write_text("".join(f"127.0.0.{n + 2} {host}\n" for n, host in enumerate(names)))
    (folder / f"{name}.seeds").write_text("".join(f"http://{host}:{server_port}/\n" for host in names))
    _, _, settings, _ = TROUBLES[name]
    settings = {**_STAYING, **one_pace(1.0), "NEVERCRAWL_FILE": "", "WATCH_PORT": str(watch_port), **settings}
    command = crawl_command(folder / f"{name}.seeds", folder / name, folder / f"{name}.hosts", settings)
    with (folder / f"{name}.log").open("wb") as output:
        process = start(command, output)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def prometheus(folder: Path, ports: dict[str, int]) -> Iterator[str]:
    """Where it answers; it looks at each crawl every two seconds."""
    (folder / "alerts.yml").write_text(shortened(RULES.read_text()))
    targets = [{"targets": [f"127.0.0.1:{port}"], "labels": {"crawl": name}} for name, port in ports.items()]
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s", "scrape_timeout": "2s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [{"job_name": "crawler", "static_configs": targets}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(PROMETHEUS), "--config.file=prometheus.yml", f"--web.listen-address={address}", "--storage.tsdb.path=tsdb"
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait()


def firing(url: str, ports: dict[str, int]) -> set[tuple[str, str]]:
    """Crawl and alert, of all that fire now."""
    by_port = {f"127.0.0.1:{port}": name for name, port in ports.items()}
    try:
        with _open(f"{url}/api/v1/alerts", timeout=10) as answer:
            alerts = json.load(answer)["data"]["alerts"]
    except OSError:  # it is not up yet
        return set()
    return {
        (by_port[alert["labels"]["instance"]], alert["labels"]["alertname"])
        for alert in alerts
        if alert["state"] == "firing"
    }


def watch(folder: Path) -> set[tuple[str, str]]:
    """Make every trouble; what fired until all that is wanted had, or the time was over."""
    wanted = {(name, alert) for name, (*_, alerts) in TROUBLES.items() for alert in alerts}
    ports, seen = {name: free_port() for name in TROUBLES}, set[tuple[str, str]]()
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(serving())
        crawls = {name: stack.enter_context(crawling(folder, name, port, own)) for name, own in ports.items()}
        for name, crawl in crawls.items():  # before that a crawl is down as well
            wait_for(folder / name / "status.json", crawl)
        url = stack.enter_context(prometheus(folder, ports))
        until = time.monotonic() + _DEADLINE_SECONDS
        crawls["stopped"].send_signal(signal.SIGSTOP)
        while not wanted <= seen and time.monotonic() < until:
            time.sleep(1.0)
            for name, alert in firing(url, ports) - seen:
                print(f"{name:10} {alert}", flush=True)
                seen.add((name, alert))
    return seen


def main() -> int:
    """Print what fired as it does, then what was wanted in vain, and what nothing here provokes."""
    if not PROMETHEUS.exists():
        sys.exit(f"{PROMETHEUS} is missing: make alerts brings it")
    wanted = {(name, alert) for name, (*_, alerts) in TROUBLES.items() for alert in alerts}
    with tempfile.TemporaryDirectory() as folder:
        seen = watch(Path(folder))
    every = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    print("Did not fire:", ", ".join(f"{name} {alert}" for name, alert in sorted(wanted - seen)) or "none")
    print("Not provoked:", ", ".join(sorted(every - {alert for _, alert in seen})))
    return 1 if wanted - seen else 0


if __name__ == "__main__":
    sys.exit(main())
