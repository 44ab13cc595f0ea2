"""``make crawl``'s script: nothing is deleted, signals arrive once, the exit status is Scrapy's."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.scripts.loading import loaded

ROOT = Path(__file__).resolve().parents[2]

# Stands in for scrapy: says when it is ready, counts the SIGINTs that one press brings. It listens for a while for the
# second that must not come.
COUNTS_INTERRUPTS = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
sys.exit(40 + len(seen))
"""


@pytest.fixture
def script() -> ModuleType:
    """scripts/crawl.py as a module."""
    return loaded("crawl")


def test_earlier_demonstrations_are_put_aside(script: ModuleType, tmp_path: Path) -> None:
    """Crawl and web get the same next free number, and keep what is in them."""
    demo, web = tmp_path / "demo", tmp_path / "demo-web"
    for round_ in ("first", "second"):
        demo.mkdir()
        web.mkdir()
        (demo / round_).touch()
        script.put_aside([demo, web])

    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-1", "demo-2", "demo-web-1", "demo-web-2"]
    assert (tmp_path / "demo-1" / "first").exists()
    assert (tmp_path / "demo-2" / "second").exists()


def test_nothing_to_put_aside(script: ModuleType, tmp_path: Path) -> None:
    """The first demonstration renames nothing."""
    script.put_aside([tmp_path / "demo"])

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        ([], "crawls/web"),
        (["-s", "CRAWL_DIR=/data/a"], "/data/a"),
        (["-sCRAWL_DIR=/data/a"], "/data/a"),
        (["--set=CRAWL_DIR=/data/a"], "/data/a"),
        (["--set", "CRAWL_DIR=/data/a", "-s", "CRAWL_DIR=/data/b"], "/data/b"),
        (["-a", "CRAWL_DIR=/data/a", "-s", "PACE_PRESET=mirror"], "crawls/web"),
    ],
)
def test_finds_the_crawl_dir(script: ModuleType, arguments: list[str], folder: str) -> None:
    """However Scrapy's option is written, and the last one wins; a spider argument is no setting."""
    assert script.crawl_dir(arguments, Path("crawls/web")) == Path(folder)


def test_an_interrupt_arrives_once(script: ModuleType) -> None:
    """One Ctrl-C is one SIGINT: a second one would end the crawl at once."""
    process = subprocess.Popen([sys.executable, "-c", COUNTS_INTERRUPTS], stdout=subprocess.PIPE, process_group=0)
    assert process.stdout is not None
    with process.stdout, script.handing_on_signals(process):
        assert process.stdout.readline() == b"ready\n"
        os.kill(os.getpid(), signal.SIGINT)

        assert process.wait() == 41


def test_the_handlers_are_given_back(script: ModuleType) -> None:
    """After the crawl Ctrl-C is ours again."""
    before = signal.getsignal(signal.SIGINT)
    process = subprocess.Popen([sys.executable, "-c", ""])
    with script.handing_on_signals(process):
        process.wait()

    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_exit_status_is_scrapys(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    """A status is passed back, and a death by signal as a shell says it."""
    real = subprocess.Popen
    monkeypatch.setattr(
        script.subprocess, "Popen", lambda command, **options: real([sys.executable, "-c", code], **options)
    )

    assert script.run_scrapy("seeds.txt", {}, []) == status


def recorded(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the script starts from now on; in their place runs what ends at once."""
    commands: list[list[str]] = []
    real = subprocess.Popen

    def record(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        commands.append(command)
        return real([sys.executable, "-c", ""], **options)

    monkeypatch.setattr(script.subprocess, "Popen", record)
    return commands


def test_the_command_is_scrapys_own(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds as an argument, settings as -s, the operator's own arguments last so that they win."""
    commands = recorded(script, monkeypatch)
    script.run_scrapy("https://a.test/?x=1&y=2", {"PACE_PRESET": "mirror"}, ["-s", "PACE_PRESET=default"])

    assert commands[0][2:] == [
        "scrapy", "crawl", "web", "-a", "seeds=https://a.test/?x=1&y=2",
        "-s", "PACE_PRESET=mirror", "-s", "PACE_PRESET=default",
    ]  # fmt: skip


def test_workers_make_it_a_fleet(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """WORKERS in the environment; empty, as make hands it on, is one process."""
    commands = recorded(script, monkeypatch)
    for workers in ("2", ""):
        monkeypatch.setenv("WORKERS", workers)
        script.run_scrapy("seeds.txt", {}, [])

    assert commands[0][2:] == ["scrapy", "fleet", "--workers", "2", "-a", "seeds=seeds.txt"]
    assert commands[1][2:] == ["scrapy", "crawl", "web", "-a", "seeds=seeds.txt"]


def test_a_crawl_that_never_started_has_no_report(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal at start stays the last thing on the screen."""
    script.report(tmp_path / "missing")

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("status", "reported"), [(2, False), (0, True), (70, True)])
def test_a_refused_start_is_the_last_word(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    status: int, reported: bool,
) -> None:  # fmt: skip
    """What an earlier crawl in the same folder has done does not bury the sentence that says what to mend."""
    (tmp_path / "log").mkdir()
    real = subprocess.Popen
    monkeypatch.setattr(
        script.subprocess, "Popen",
        lambda command, **options: real([sys.executable, "-c", f"raise SystemExit({status})"], **options),
    )  # fmt: skip

    assert script.crawl_seeds("https://a.test/", ["-s", f"CRAWL_DIR={tmp_path}"]) == status

    assert ("How it stands" in capsys.readouterr().out) is reported


def test_the_report_says_where_things_are(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten lines, then three commands that can be typed as they stand; after a panel the crawl has said the ten."""
    (tmp_path / "log").mkdir()
    script.report(tmp_path)
    lines = [line for line in capsys.readouterr().out.splitlines() if line]

    assert len(lines) == 13
    assert [line.split()[-3:] for line in lines[10:]] == [
        ["status", "-s", f"CRAWL_DIR={tmp_path}"],
        ["URL", "-s", f"CRAWL_DIR={tmp_path}"],
        ["report.html", "-s", f"CRAWL_DIR={tmp_path}"],
    ]
    script.report(tmp_path, summed_up=True)
    assert [line for line in capsys.readouterr().out.splitlines() if line] == lines[10:]


def test_the_commands_named_are_there(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scrapy of this environment, relative to where make is; the project's usual folder need not be named."""
    for folder, rest in (("crawls/web", ""), ("crawls/a b", " -s 'CRAWL_DIR=crawls/a b'")):
        line = script.where_to_look(Path(folder))[0]
        scrapy = line.removeprefix("How it stands").strip().removesuffix(rest).removesuffix(" status")
        assert line.endswith(f"{scrapy} status{rest}")
        assert (ROOT / scrapy).is_file()
        assert os.access(ROOT / scrapy, os.X_OK)
    monkeypatch.setattr(script.sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    assert script.where_to_look(Path("crawls/web"))[0].split()[-2:] == [".venv/bin/scrapy", "status"]
