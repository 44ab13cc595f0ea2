"""Write docs/commands.md: every command of this project, run for real against the synthetic web, with what it printed.

``python scripts/commands_doc.py`` takes three minutes. Nothing in that page is typed by hand but what stands here.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "commands.md"
PORT = 8090  # of the synthetic web; fixed, so that two runs of this script differ in times only
SHOWN_LINES = 5
SHOWN_LETTERS = 118
DEADLINE_SECONDS = 180.0

SETTINGS = (
    (ROOT / "scripts" / "demo_settings.py").read_text()
    + """
SCOPE_MAX_DEPTH = 30
BACKOFF_MAX_SECONDS = 4
FRONTIER_MAX_REST_SECONDS = 8
PROGRESS_LOG_SECONDS = 2
"""
)

HEAD = """# Commands

Every command, run against the synthetic web that ships with the project, with what it printed; long output is cut
(`[…]`). `scripts/commands_doc.py` makes this page. Scrapy's own commands work as Scrapy documents them.

All take `-s NAME=VALUE`; `-s CRAWL_DIR=…` names another crawl than `crawls/web`. `scrapy COMMAND --help` has every
option.
"""


WHY_JSON = """With `--json` every moment is ISO 8601 in UTC (`_at`, `_until`), every duration in seconds (`_seconds`),
and what is not known is `null` or left out. The names are those of the lines above. Of a URL:

| name | meaning |
|---|---|
| `state` | `never-seen`, `refused`, `waiting`, `retry`, `leased`, `done` or `failed` |
| `reason`, `rule` | a word of [reasons.md](reasons.md); the rule or line behind it (`list_line`, `robots_line`) |
| `protego_allowed` | `null` where it was not asked ([robots.md](robots.md#two-readers)) |
| `setting`, `limit`, `value` | the bound that was met |
| `via`, `named_by`, `wanted_by` | the page, the strange domain, the page in the browser by which it was found |
| `pace_source` | `start`, `response-time`, `robots` or `left-alone` |
| `before_at`, `before_reason` | an earlier visit of one that is queued again |
| `last_attempt_…`, `last_of_host_…` | from the request log; the latter where the URL waits for its host |
| `warc`, `offset`, `length` | its latest capture: file, first byte, bytes |
| `challenge`, `wall_marks` | whose anti-bot wall that is; marks in its metadata record |

Of a host, `state` is as `scrapy hosts` has it, 0 among `ports` is the scheme's own, and `robots_http` and
`robots_https` say what was had of its robots.txt, or when it is `asked_again_at`."""


# Of ``scrapy status``; tests/commands/test_fleet_folders.py holds the schema to its word.
STATUS_JSON = """\
`--json` has the form of [status.schema.json](status.schema.json): `schema` grows when a name goes or changes its
meaning; new names may come at any time. `--metrics` is for [Prometheus](running.md#prometheus-and-grafana), `--alive`
for what [watches processes](running.md#look-on)."""


class Run(NamedTuple):
    """One command line; ``when``: before the crawl, during it or after it."""

    arguments: str
    when: str
    note: str = ""
    lines: int = SHOWN_LINES


def runs(port: int) -> list[Run]:
    """In the order in which they are run."""
    return [
        Run("forecast seeds.txt --pages 500", "before"),
        Run("crawl web -a seeds=seeds.txt", "during", lines=4),
        Run("status", "during", STATUS_JSON, 7),
        Run(
            "hosts --limit 5",
            "during",
            "On a terminal the first 50; elsewhere the first 10,000, as lines with tabs. `--all` has all, by name.",
            4,
        ),
        Run('pause busy.test --why "their webmaster is looking into it"', "during"),
        Run("resume busy.test", "during"),
        Run("state backup kept/web", "during"),
        Run(f"add http://plain1.test:{port}/", "during"),
        Run('never trap.test --why "asked by their webmaster"', "during"),
        Run(f'withdraw http://plain2.test:{port}/ --why "asked by their webmaster"', "during"),
        Run(f"shell -c page http://etiquette.test:{port}/", "during", "`page.links` shows each link with its gate."),
        Run(f"fetch http://rules.test:{port}/private/1", "during"),
        Run(f"parse --nocolour http://rules.test:{port}/", "during", lines=3),
        Run(f"view http://excluded.test:{port}/", "during"),
        Run(f"why http://down.test:{port}/", "after", lines=12),
        Run(f"why delay.test:{port} --json", "after", WHY_JSON, 3),
        Run(f"robots http://rules.test:{port}/private/1", "after", "`>` marks the line that decides."),
        Run("requests busy.test", "after"),
        Run("reply busy.test", "after", lines=7),
        Run("report report.html", "after"),
        Run("botpage public --address 192.0.2.7", "after"),
        Run("samples samples", "after", lines=3),
        Run("doctor", "after"),
        Run("consent --purpose ai-train", "after", lines=3),
        Run("traps", "after"),
        Run("audit crawls/web", "after"),
        Run("verify", "after"),
        Run(f"lookup http://plain1.test:{port}/", "after"),
        Run(f"show http://plain1.test:{port}/gone.html", "after"),
        Run("index", "after"),
        Run("process --workers 1", "after"),
        Run("rank", "after"),
        Run("load", "after"),
        Run("export", "after"),
        Run("wacz -o web.wacz --text", "after"),
        Run("plan plan.jsonl.gz --known crawls/web --random 1", "after"),
        Run(
            "fleet -a seeds=seeds.txt --workers 2 -s CRAWL_DIR=crawls/fleet -s PROGRESS_LOG_SECONDS=20",
            "after",
            lines=3,
        ),
        Run("recover crawls/fleet", "after"),
        Run(
            "commoncrawl crawls/web/index/parquet --domain plain1.test -s CRAWL_DIR=crawls/again",
            "after",
        ),
    ]


def main() -> int:
    """Run everything and write the page; 1 when a command left a traceback."""
    with tempfile.TemporaryDirectory(prefix="commands-") as folder:
        home = Path(folder)
        (home / "scrapy.cfg").write_text("[settings]\ndefault = demo_settings\n")
        (home / "demo_settings.py").write_text(SETTINGS)
        web = subprocess.Popen(
            [sys.executable, "-m", "tests.web", "--port", str(PORT), "--folder", str(home)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(home / "ready", web)
            (home / "nevercrawl.txt").rename(home / "NeverCrawl.txt")
            printed = run_all(home)
        finally:
            web.terminate()
            web.wait()
    bad = [arguments for arguments, text in printed.items() if "Traceback" in text]
    for arguments in bad:
        print(f"scrapy {arguments} failed:\n{printed[arguments]}", file=sys.stderr)
    PAGE.write_text(page(printed), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(printed)} runs")
    return 1 if bad else 0


def run_all(home: Path) -> dict[str, str]:
    """What each command printed, by its arguments."""
    printed: dict[str, str] = {}
    plan = runs(PORT)
    for run in plan:
        if run.when == "before":
            printed[run.arguments] = output(home, run.arguments)
    crawl = next(run for run in plan if run.arguments.startswith("crawl "))
    with (home / "crawl.log").open("wb") as log:
        process = subprocess.Popen(command(crawl.arguments), cwd=home, env=environment(home), stdout=log, stderr=log)
    wait_for(home / "crawls" / "web" / "status.json", process)
    until = time.monotonic() + DEADLINE_SECONDS
    while (home / "server.jsonl").read_bytes().count(b"\n") < 80 and time.monotonic() < until:
        time.sleep(0.1)
    for run in plan:
        if run.when == "during" and run is not crawl:
            printed[run.arguments] = output(home, run.arguments)
    process.wait(DEADLINE_SECONDS)
    printed[crawl.arguments] = ours((home / "crawl.log").read_text())
    for run in plan:
        if run.when == "after":
            text = output(home, run.arguments)
            printed[run.arguments] = ours(text) if run.arguments.startswith("fleet ") else text
    return {arguments: text.replace(f"{home}/", "") for arguments, text in printed.items()}


def ours(log: str) -> str:
    """Our own lines of a log, without date and name of the logger."""
    kept = [line for line in log.splitlines() if "[crawlerproject" in line or "Traceback" in line]
    return "\n".join(re.sub(r"^\S+ (\S+) \[crawlerproject\S+ ", r"\1 ", line) for line in kept)


def output(home: Path, arguments: str) -> str:
    """Standard output and errors of one command."""
    ended = subprocess.run(
        command(arguments), cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=DEADLINE_SECONDS, check=False,
    )  # fmt: skip
    return ended.stdout


def command(arguments: str) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "scrapy", *shlex.split(arguments)]


def environment(home: Path) -> dict[str, str]:
    """Ours, with the project on the path and without proxies."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    # The user who writes this page may have lists and settings of their own.
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "110", "XDG_CONFIG_HOME": str(home / "config")}


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the file is there."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not path.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{path} never came")
        time.sleep(0.05)


def page(printed: dict[str, str]) -> str:
    """The whole page: one section a command, in alphabetical order."""
    plan = runs(PORT)
    sections = [HEAD]
    for name in names():
        entry = import_module(f"crawlerproject.commands.{name}").Command()
        about, _, example = " ".join(entry.long_desc().split()).partition(" Example: ")
        lines = [f"## scrapy {name}", "", f"    scrapy {name} {entry.syntax()}".rstrip(), "", wrapped(about)]
        mine = [run for run in plan if shlex.split(run.arguments)[0] == name]
        if example and not mine:
            lines += ["", f"For example: `{example.partition(' (-s CRAWL_DIR=DIR')[0].strip('`')}`"]
        for run in mine:
            if run.note:
                lines += ["", run.note]
            lines += ["", "```", f"$ scrapy {run.arguments}", cut(printed[run.arguments], run.lines), "```"]
        sections.append("\n".join(lines))
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


def names() -> list[str]:
    """Every command of this project."""
    found = []
    for path in sorted((ROOT / "crawlerproject" / "commands").glob("*.py")):
        if path.stem != "__init__" and hasattr(import_module(f"crawlerproject.commands.{path.stem}"), "Command"):
            found.append(path.stem)
    return found


def wrapped(text: str) -> str:
    """A paragraph of lines that fit."""
    return textwrap.fill(text, 118)


def cut(text: str, lines: int) -> str:
    """The first lines, each not too long; what is left out is marked."""
    every = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()
    shown = [line if len(line) <= SHOWN_LETTERS else f"{line[:SHOWN_LETTERS]} […]" for line in every[:lines]]
    return "\n".join([*shown, *(["[…]"] if len(every) > lines else [])])


def selected(arguments: Sequence[str]) -> int:
    """Takes no arguments."""
    if arguments:
        print("Usage: python scripts/commands_doc.py", file=sys.stderr)
        return 2
    return main()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(selected(sys.argv[1:]))
