"""deploy/compose, deploy/kubernetes and deploy/redis: what they name exists, fits together, and is closed to strangers.

``python -m benchmarks.fresh_root.compose`` has the fleet of the compose file run.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError

from crawlerproject.settings import OURS
from tests.crawls.archive.pywb_server import TOOLS
from tests.deploy.test_units import FOLDER as UNITS
from tests.deploy.test_units import values
from tests.stores.redis_servers import RedisServer
from tests.web.running import PROJECT

DEPLOY = PROJECT / "deploy"
COMPOSE = DEPLOY / "compose"
KUBERNETES = DEPLOY / "kubernetes" / "fleet.yaml"
#: ``make manifests`` has it there.
VALIDATE = PROJECT / "build" / "manifests" / "bin" / "kubernetes-validate"
SERVER = (PROJECT / "crawlerproject/extensions/status_server.py").read_text()
_READ = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
_STOP_SECONDS = 900  # of the units, which say what they are made of

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools, which can read YAML")


@cache
def documents(path: Path) -> list[dict[str, Any]]:
    """Of a YAML file; anchors and merges are resolved."""
    done = subprocess.run([TOOLS / "python", "-c", _READ, path], capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Those of the compose file."""
    [compose] = documents(COMPOSE / "compose.yaml")
    found: dict[str, Any] = compose["services"]
    return found


def kubernetes(kind: str, name: str) -> dict[str, Any]:
    """The spec of an object."""
    [found] = [each for each in documents(KUBERNETES) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    spec: dict[str, Any] = found["spec"]
    return spec


def test_the_units_stop_takes_as_long() -> None:
    """What follows is compared with it."""
    assert values(UNITS / "crawl@.service", "TimeoutStopSec") == [f"{_STOP_SECONDS // 60}min"]


def test_compose_has_what_it_mounts_and_asks(services: dict[str, Any]) -> None:
    """Files that are there, ports on loopback alone, no password of its own, settings of ours."""
    text = (COMPOSE / "compose.yaml").read_text()
    example = dict(line.split("=", 1) for line in (COMPOSE / "env.example").read_text().splitlines() if "=" in line)
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]

    assert sum(path.startswith(".") for path in mounted) == 10
    assert [path for path in mounted if path.startswith(".") and not (COMPOSE / path).exists()] == []
    assert all(port.startswith("127.0.0.1:") for each in services.values() for port in each.get("ports", []))
    assert set(re.findall(r"\$\{(\w+):\?", text)) == example.keys()
    assert [name for name, value in example.items() if "PASSWORD" in name and value] == []
    named = {name for each in services.values() for name in each.get("environment", {}) if name.startswith("POLITE_")}
    assert {name.removeprefix("POLITE_") for name in named} <= OURS.keys()
    assert tomllib.loads((COMPOSE / "config/settings.toml").read_text()).keys() <= OURS.keys()


def test_three_workers_are_seen_by_their_addresses(services: dict[str, Any]) -> None:
    """Prometheus asks where they listen; they are healthy while /ready says so, and have the time of an orderly end."""
    workers = {name: each for name, each in services.items() if name.startswith("worker-")}
    [config] = documents(COMPOSE / "prometheus.yml")
    [job] = config["scrape_configs"]

    assert job["job_name"] == "crawler"
    addresses = [worker["networks"]["default"]["ipv4_address"] for worker in workers.values()]
    assert job["static_configs"] == [{"targets": [f"{address}:8765" for address in addresses]}]
    assert len({each["volumes"][0] for each in workers.values()}) == len(workers) == 3
    for (name, worker), address in zip(workers.items(), addresses, strict=True):
        assert worker["hostname"] == name
        assert worker["environment"]["POLITE_WATCH_ADDRESS"] == address
        assert ":8765/ready' % os.environ['POLITE_WATCH_ADDRESS']" in worker["healthcheck"]["test"][-1]
        assert worker["stop_grace_period"] == f"{_STOP_SECONDS // 60}m"
    assert '"ready": ' in SERVER


def test_kubernetes_drains_and_probes() -> None:
    """The three probes ask what is served; a stop has its time; every object selects the workers."""
    pod = kubernetes("StatefulSet", "crawler")["template"]["spec"]
    [worker] = pod["containers"]
    probes = {name: worker[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    names = [each["name"].removeprefix("POLITE_") for each in worker["env"] if each["name"].startswith("POLITE_")]

    assert pod["terminationGracePeriodSeconds"] == _STOP_SECONDS
    assert probes["readiness"]["path"] == "/ready"
    assert probes["liveness"]["path"] == probes["startup"]["path"] == "/status.json"
    assert '"status.json": ' in SERVER
    assert {"WATCH_ADDRESS", "FLEET_WORKER", *names} <= OURS.keys()
    assert "polite-crawler stop && " in worker["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert {"cpu", "memory"} == worker["resources"]["requests"].keys()
    assert "memory" in worker["resources"]["limits"]
    labels = kubernetes("StatefulSet", "crawler")["template"]["metadata"]["labels"]
    assert kubernetes("PodDisruptionBudget", "crawler")["selector"]["matchLabels"] == labels
    assert kubernetes("Service", "crawler")["selector"] == labels
    assert kubernetes("HorizontalPodAutoscaler", "crawler")["scaleTargetRef"]["name"] == "crawler"
    assert "replicas" not in kubernetes("StatefulSet", "crawler"), "the autoscaler's"


@pytest.mark.skipif(not VALIDATE.exists(), reason="make manifests brings it")
def test_kubernetes_own_schemas_agree() -> None:
    """Of its newest version, and of one two years old; no field that it does not know."""
    for version in ("1.37", "1.31"):
        done = subprocess.run(
            [VALIDATE, "--strict", "--kubernetes-version", version, KUBERNETES],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def commands(services: dict[str, Any]) -> dict[str, tuple[list[str], str]]:
    """The shell that starts Redis, and its script, by where it is written."""
    compose, kube = services["redis"], kubernetes("StatefulSet", "redis")["template"]["spec"]["containers"][0]
    return {
        "compose": (compose["entrypoint"], compose["command"][0].replace("$$", "$")),
        "kubernetes": (kube["command"], kube["args"][0]),
    }


class _Started(RedisServer):
    """By a command of the files, whose folders are here."""

    def __init__(self, folder: Path, shell: list[str], script: str) -> None:
        super().__init__(folder)
        for name in ("redis.conf", "users.acl"):
            text = (DEPLOY / "redis" / name).read_text()
            (folder / name).write_text(self._here(text.replace("bind * -::*", f"bind 127.0.0.1\nport {self.port}")))
        passwords = ["env", "CRAWLERS=worker0", "OPERATORS=operator0"]
        self._command = [*passwords, *shell, self._here(script)]

    def _here(self, text: str) -> str:
        folder = str(self.folder)
        text = text.replace("/data/users.acl", f"{folder}/made.acl").replace("/etc/redis", folder)
        return re.sub(r"^dir /data$", f"dir {folder}", text, flags=re.MULTILINE)

    def command(self) -> list[str]:
        return self._command

    def client(self) -> Redis:
        return Redis(port=self.port, password="operator0")


@pytest.fixture(params=["compose", "kubernetes"])
def shipped(request: pytest.FixtureRequest, services: dict[str, Any], tmp_path: Path) -> Iterator[RedisServer]:
    """The Redis that a file starts."""
    server = _Started(tmp_path, *commands(services)[request.param])
    try:
        yield server.start()
    finally:
        server.stop()


def test_the_shipped_redis_keeps_all_and_lets_workers_do_their_work(shipped: RedisServer) -> None:
    """Nothing is evicted or lost, and the workers' user may neither empty nor configure it, nor touch other keys."""
    with shipped.client() as operator:
        said = operator.config_get("*")
    assert (said["maxmemory-policy"], said["appendonly"], said["appendfsync"]) == ("noeviction", "yes", "everysec")
    assert int(said["maxmemory"]) > 0
    with Redis(port=shipped.port) as stranger, pytest.raises(AuthenticationError):
        stranger.ping()
    with Redis(port=shipped.port, username="crawler", password="worker0") as worker:
        worker.set("{web.1}", "1")
        assert worker.eval("return redis.call('GET', KEYS[1])", 1, "{web.1}") == b"1"
        for words in (["FLUSHALL"], ["CONFIG", "GET", "*"], ["GET", "other"]):
            with pytest.raises(NoPermissionError):
                worker.execute_command(*words)
