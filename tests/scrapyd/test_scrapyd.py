"""Real scrapyds on loopback: a crawl deployed, cancelled and continued; one without an egg; one crawl on three."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from zipfile import ZipFile

import pytest

from tests.scrapyd.scrapyds import DEADLINE_SECONDS, JOB, Scrapyd
from tests.scripts.loading import loaded
from tests.web import zygote
from tests.web.judge import judge_folder, read_captures
from tests.web.ports import free_port
from tests.web.running import IDENTITY, PROJECT, RunningWeb, read_pages, small_settings, synthetic_web
from tests.web.waiting import wait_until

PAGES_BEFORE_CANCEL = 60

CONFIG: str = loaded("three_machines").SCRAPYD


@contextmanager
def running_scrapyd(folder: Path, more: str = "", **environment: str) -> Iterator[Scrapyd]:
    """``scrapyd`` in a process of its own, ended on leaving; ``more`` is configuration, too."""
    folder.mkdir()
    port = free_port()
    (folder / "scrapyd.conf").write_text(CONFIG.format(port=port) + more)
    command, clean = [sys.executable, "-m", "scrapyd"], zygote.direct(**environment)
    with (folder / "scrapyd.log").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=clean, stdout=output, stderr=subprocess.STDOUT)
    scrapyd = Scrapyd(port)
    try:
        wait_until(scrapyd.answers, "answered", seconds=DEADLINE_SECONDS, process=process, log=folder / "scrapyd.log")
        yield scrapyd
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


BUILT_FROM = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "Makefile")


def deploy(scrapyd: Scrapyd, folder: Path) -> subprocess.CompletedProcess[str]:
    """``make deploy`` in a copy of the project, so that nothing is built in the real one."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "crawlerproject", *BUILT_FROM],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / name, folder / name)
    target = f"[deploy:local]\nurl = {scrapyd.url}/\nproject = crawlerproject\n"
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = crawlerproject.settings\n" + target)
    # The tests' own environment instead of .venv.
    command = ["make", "deploy", "DEV_READY=", f"VENV={Path(sys.executable).parent.parent}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)


def schedule(scrapyd: Scrapyd, web: RunningWeb, crawl_dir: Path, more: Mapping[str, str] | None = None) -> str:
    """Start a crawl of the synthetic web, with ``more`` settings; the job's id."""
    settings = {
        **IDENTITY, **small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8", "CRAWL_DIR": str(crawl_dir),
        "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "PROGRESS_LOG_SECONDS": "1", **(more or {}),
    }  # fmt: skip
    said = scrapyd.ask(
        "schedule", project="crawlerproject", spider="web", seeds=str(web.folder / "seeds.txt"), scope="any",
        setting=[f"{name}={value}" for name, value in settings.items()],
    )  # fmt: skip
    return str(said["jobid"])


def test_the_shipped_one_wants_a_password_on_loopback(tmp_path: Path) -> None:
    """What the unit makes before its start is what opens it; another address of this machine is not listened at."""
    unit = (PROJECT / "deploy/systemd/scrapyd.service").read_text()
    (first,) = re.findall(r"^ExecStartPre=/bin/sh -c '(.*)'$", unit, flags=re.MULTILINE)
    shipped = (PROJECT / "deploy/systemd/scrapyd.conf").read_text()
    port, made = free_port(), tmp_path / "scrapyd.conf"
    (tmp_path / ".scrapyd.conf").write_text(shipped.replace("[scrapyd]\n", f"[scrapyd]\nhttp_port = {port}\n"))
    script, texts = first.replace("%%", "%").replace("$$", "$"), []  # as systemd does
    for _ in range(2):
        subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True)
        texts.append(made.read_text())
    assert texts[0] == texts[1], "the second start keeps it"
    assert made.stat().st_mode & 0o077 == 0
    command, clean = [sys.executable, "-m", "scrapyd", "--pidfile="], zygote.direct(HOME=str(tmp_path))
    with (tmp_path / "log").open("wb") as output:
        process = subprocess.Popen(command, cwd=tmp_path, env=clean, stdout=output, stderr=subprocess.STDOUT)
    try:
        opened = Scrapyd(port, made)
        wait_until(opened.answers, "answered", seconds=DEADLINE_SECONDS, process=process, log=tmp_path / "log")
        with pytest.raises(HTTPError, match="401"):
            Scrapyd(port).ask("schedule", **JOB)
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port)):
            pass
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)
    made.write_text("[scrapyd]\n")
    assert subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=False).returncode == 1


class Deployed(NamedTuple):
    """A scrapyd that was given the project, and what it keeps of that."""

    scrapyd: Scrapyd
    folder: Path
    egg: Path


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """By ``make deploy``."""
    folder = tmp_path_factory.mktemp("deployed")
    with running_scrapyd(folder / "scrapyd") as scrapyd:
        done = deploy(scrapyd, folder / "project")
        assert '"status": "ok"' in done.stdout, done.stdout + done.stderr
        (egg,) = (folder / "scrapyd" / "eggs").rglob("*.egg")
        yield Deployed(scrapyd, folder / "scrapyd", egg)


def test_a_crawl_through_scrapyd(deployed: Deployed, tmp_path: Path) -> None:
    """Cancelled gracefully, continued in the same CRAWL_DIR by another job: nothing missing, nothing twice."""
    crawl_dir, scrapyd = tmp_path / "crawl", deployed.scrapyd
    with synthetic_web(tmp_path / "web") as web:
        assert scrapyd.ask("listspiders", project="crawlerproject")["spiders"] == ["plan", "web"]

        first = schedule(scrapyd, web, crawl_dir, {"LOG_LINES": "json"})
        served = web.folder / "server.jsonl"
        wait_until(lambda: read_pages(served) >= PAGES_BEFORE_CANCEL, "crawled", seconds=DEADLINE_SECONDS)
        assert scrapyd.state(first) == "running"
        scrapyd.ask("cancel", project="crawlerproject", job=first)
        wait_until(lambda: scrapyd.state(first) == "finished", "cancelled", seconds=DEADLINE_SECONDS)
        cancelled_at = read_pages(served)
        assert not list((crawl_dir / "warc").glob("*.open"))  # in good order

        # All the rest is in the crawl's crawl.toml; one that has none is refused, and its log says so.
        second = str(scrapyd.ask("schedule", **JOB, setting=f"CRAWL_DIR={crawl_dir}")["jobid"])
        refused = str(scrapyd.ask("schedule", **JOB, setting=f"CRAWL_DIR={tmp_path / 'nothing'}")["jobid"])
        wait_until(lambda: scrapyd.state(refused) == "finished", "refused", seconds=DEADLINE_SECONDS)
        wait_until(lambda: scrapyd.state(second) == "finished", "finished", seconds=DEADLINE_SECONDS)
        assert read_pages(served) > cancelled_at
        verdict = judge_folder(web.folder, crawl_dir, host_seconds=0.25, ip_seconds=0.5)
        logs = {
            job: next((deployed.folder / "logs").rglob(f"{job}.log")).read_text() for job in (first, second, refused)
        }

    with ZipFile(deployed.egg) as opened:  # which scrapyd does not unpack
        names = set(opened.namelist())
    assert [name for name in names if name.startswith("crawlerproject/native/_page")] == []
    assert {f"{name}c" for name in names if name.endswith(".py")} <= names  # bytecode where a zip file's is looked for
    said = [json.loads(line) for job in (first, second) for line in logs[job].splitlines()]
    assert said[0]["message"].startswith("Scrapy ")
    assert "Page reader: Python (the native reader has not been built)" in [line["message"] for line in said]
    assert {"host", "reason"} <= {name for line in said for name in line}
    assert logs[refused].count("\n") == 1
    assert "ERROR: The crawl does not start: There are no seeds" in logs[refused]
    assert verdict.faults == []
    assert "pages/s" in logs[first]
    assert "'finish_reason': 'shutdown'" in logs[first]
    assert "'finish_reason': 'finished'" in logs[second]
    assert "Traceback" not in logs[first] + logs[second]


def test_jobs_of_the_unit_run_what_is_installed(tmp_path: Path) -> None:
    """By the configuration beside scrapyd.service: no egg, and a job is what ``polite-crawler`` is in any folder."""
    configured = (PROJECT / "deploy" / "systemd" / "scrapyd.conf").read_text().partition("[scrapyd]\n")[2]
    configured = configured.replace("bind_address = 127.0.0.1\n", "")  # the test's own has it
    with running_scrapyd(tmp_path / "scrapyd", configured, PYTHONPATH=str(PROJECT)) as scrapyd:
        assert scrapyd.ask("listspiders", project="crawlerproject")["spiders"] == ["plan", "web"]
        refused = str(scrapyd.ask("schedule", **JOB, setting=f"CRAWL_DIR={tmp_path / 'nothing'}")["jobid"])
        wait_until(lambda: scrapyd.state(refused) == "finished", "refused", seconds=DEADLINE_SECONDS)

    (said,) = (path.read_text() for path in (tmp_path / "scrapyd" / "logs").rglob(f"{refused}.log"))
    assert "The crawl does not start: There are no seeds" in said
    assert "'-m', 'crawlerproject', 'crawl', 'web'" in (tmp_path / "scrapyd" / "scrapyd.log").read_text()


@pytest.mark.long_attack
def test_three_machines_share_a_crawl(deployed: Deployed, tmp_path: Path) -> None:
    """The drill of docs/runbook.md: a third is added, the first drained, the second lost and recovered.

    To the web's log, and in the archive, they are one crawler; the audit of all logs finds every pause kept.
    """
    folder = tmp_path / "trial"
    command = [sys.executable, str(PROJECT / "scripts" / "three_machines.py"), "--folder", str(folder)]
    command += ["--egg", str(deployed.egg)]
    ended = subprocess.run(command, env=zygote.direct(), capture_output=True, text=True, check=False)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    machines = ("first", "second", "third")
    folders = [folder / name / "crawl" / name for name in machines]
    # Not by our log: what the lost machine was asking for has no line there, and is asked for again.
    verdict = judge_folder(folder / "web", None, workers=folders, host_seconds=0.25, ip_seconds=0.5, log=False)
    logs = {name: next((folder / name / "logs").rglob("*.log")).read_text() for name in machines}

    assert verdict.faults == []
    for name, own in zip(machines, folders, strict=True):
        assert read_captures(own / "warc"), name
        assert f"Worker    {name}: " in said
        assert "Traceback" not in logs[name]
    assert "'finish_reason': 'shutdown'" in logs["first"]
    assert "Spider closed" not in logs["second"]
    assert "'finish_reason': 'finished'" in logs["third"]


def test_nothing_opens_files_beside_the_code() -> None:
    """Scrapyd does not unpack the egg, so that a path made from ``__file__`` leads nowhere."""
    guilty = [
        path.name
        for path in (PROJECT / "crawlerproject").rglob("*.py")
        if "__file__" in path.read_text(encoding="utf-8")
    ]

    assert guilty == []
