"""The systemd units: what they name exists, what they promise of an orderly stop fits, and systemd understands them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from crawlerproject.commands.spider_command import EXIT_NOTHING
from crawlerproject.errors import EXIT_FORGOTTEN
from crawlerproject.extensions.uploads import END_WAIT_SECONDS
from crawlerproject.hooks.hook_events import TIMEOUT_SECONDS
from crawlerproject.render.renderer import WAIT_SECONDS
from crawlerproject.settings import OURS
from crawlerproject.terminal import EXIT_REFUSED
from tests.web.running import PROJECT

FOLDER = PROJECT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
SANDBOX = "# --- What it may not do"
MINUTE_SECONDS = 60.0


def values(unit: Path, name: str) -> list[str]:
    """Of every line ``NAME=…``."""
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), flags=re.MULTILINE)


def number(setting: str) -> float:
    """Its default."""
    return float(str(OURS[setting]))


def each(unit: str) -> pytest.MarkDecorator:
    """A parameter of every service."""
    return pytest.mark.parametrize(unit, [pytest.param(path, id=path.name) for path in UNITS])


def test_there_are_those_of_the_docs() -> None:
    """A crawl, a fleet, a recrawl with its timer, scrapyd; and the user of all of them."""
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {
        "crawl@.service", "fleet@.service", "recrawl@.service", "recrawl@.timer", "scrapyd.service",
        "polite-crawler.sysusers", "scrapyd.conf",
    }  # fmt: skip
    (user,) = re.findall(r"^u (\S+) ", (FOLDER / "polite-crawler.sysusers").read_text(), flags=re.MULTILINE)
    assert {(*values(unit, "User"), *values(unit, "Group")) for unit in UNITS} == {(user, user)}


@each("unit")
def test_the_command_exists(unit: Path) -> None:
    """The installed program, a command of ours, arguments of a crawl."""
    (line,) = values(unit, "ExecStart")
    program, *rest = line.split()
    name = Path(program).name
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]

    if name == "scrapyd":  # which the docs say to install beside
        (pin,) = re.findall(r"^scrapyd==\S+$", (PROJECT / "requirements-dev.txt").read_text(), flags=re.MULTILINE)
        assert rest == ["--pidfile="]
        assert f"pip install -c requirements.txt {pin}\n" in (PROJECT / "docs" / "install.md").read_text()
        return
    assert name in scripts
    assert (PROJECT / "crawlerproject" / "commands" / f"{rest[0]}.py").is_file()
    assert rest[1:] in (["$ARGS"], ["web", "$ARGS"], ["web", "-a", "mode=recrawl", "$ARGS"])


@each("unit")
def test_settings_exist(unit: Path) -> None:
    """Those of the environment and those that comments name; the crawl's folder is the one that the unit makes."""
    text = unit.read_text()
    named = {name for line in values(unit, "Environment") for name in re.findall(r"^POLITE_(\w+)=", line)}
    named |= set(re.findall(r"\b((?:FETCH|ARCHIVE|RENDER|CRAWL)_[A-Z_]+[A-Z])\b", text))

    assert named <= OURS.keys()
    if unit.name != "scrapyd.service":
        assert "POLITE_CRAWL_DIR=/var/lib/polite-crawler/%i" in values(unit, "Environment")
        assert values(unit, "StateDirectory") == ["polite-crawler polite-crawler/%i"]
        kept = EXIT_REFUSED, EXIT_FORGOTTEN, EXIT_NOTHING
        assert values(unit, "RestartPreventExitStatus") == [" ".join(map(str, kept))]


@each("unit")
def test_the_stop_is_orderly(unit: Path) -> None:
    """SIGTERM, and time for what is on its way, the browser's page and the rest of the archive, by their defaults."""
    (minutes,) = (re.fullmatch(r"(\d+)min", value) for value in values(unit, "TimeoutStopSec"))
    longest = 6 * TIMEOUT_SECONDS + WAIT_SECONDS + END_WAIT_SECONDS  # of hooks, of a page in the browser, of uploads
    names = ("FETCH_TIMEOUT_SECONDS", "RENDER_TIMEOUT_SECONDS")

    assert values(unit, "KillSignal") == ["SIGTERM"]
    # The crawl ends its browser and its workers itself; scrapyd leaves its jobs behind.
    assert values(unit, "KillMode") == ["control-group" if unit.name == "scrapyd.service" else "mixed"]
    assert minutes
    assert int(minutes[1]) * MINUTE_SECONDS > sum(map(number, names)) + longest
    assert int(*values(unit, "LimitNOFILE")) > 4 * number("FRONTIER_MAX_IN_FLIGHT")


def test_a_crawl_that_hangs_is_ended() -> None:
    """Where the main process is a crawl it is heard, and one that has hung is not given the time of an orderly stop."""
    for unit in (FOLDER / "crawl@.service", FOLDER / "recrawl@.service"):
        assert values(unit, "NotifyAccess") == ["main"]
        assert values(unit, "Restart") == ["on-failure"]  # of which an end by the watchdog is one
        assert values(unit, "TimeoutAbortSec") == ["1min"]


def test_all_are_in_the_same_sandbox() -> None:
    """What a unit may not do is written in each, since systemd has no include."""
    boxes = {unit.read_text().partition(SANDBOX)[2].partition("[Install]")[0].strip() for unit in UNITS}

    (box,) = boxes
    for line in (
        "NoNewPrivileges=yes", "PrivateTmp=yes", "ProtectSystem=strict", "ProtectHome=yes", "CapabilityBoundingSet=",
    ):  # fmt: skip
        assert f"\n{line}\n" in f"\n{box}\n"
    assert "MemoryDenyWriteExecute=yes" not in box  # Chromium would not run


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_understands_them(tmp_path: Path) -> None:
    """Every line of every unit; the program, which is not installed here, has another in its place."""
    copies = []
    for unit in (*UNITS, FOLDER / "recrawl@.timer"):
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)  # of a template, which an instance is looked for in the same folder
        copies.append(str(tmp_path / unit.name.replace("@.", "@one.")))
    for copy in copies:
        Path(copy).write_text((tmp_path / Path(copy).name.replace("@one.", "@.")).read_text())

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *copies],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert (done.returncode, said) == (0, [])
