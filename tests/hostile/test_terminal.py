"""What a site may write onto the operator's terminal: nothing, by any command, log line or panel."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import pty
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from scrapy.utils.project import get_project_settings

from crawlerproject.extensions.progress import LiveDisplay
from crawlerproject.rules.printable import printable, printable_json, printable_line, without_passwords
from crawlerproject.terminal import GuardedRecord, GuardedStream, json_text
from tests.commands.running import Done, scrapy
from tests.hostile.arena import Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import IDENTITY, PROJECT

COMMANDS = Path(PROJECT, "crawlerproject", "commands")
# Sets the title, clears the screen, writes a line of its own over ours, turns text round, hides.
EVIL = (
    "\x1b]0;owned\x07\x1b[2J\x1b[HAll clear\x9b31m\u202ezyx\u200b\u2028[link=http://e.test]click[/link][red]:bomb:\x7f"
)
EVIL_BYTES = EVIL.encode()
SECRET = "hunter2"  # the password in every address that has one
LISTED = "[b.c]"  # a host name that markup would take for its own


def evil_site(web: Arena) -> str:
    """Every place of an answer in which a site may write what it likes."""
    url = web.url("evil.test")

    def make(asked: Asked) -> bytes | None:
        text = f"word{asked.path} " * 40 + EVIL
        return {
            "/robots.txt": answer(
                f"User-agent: *\nDisallow: /no{EVIL}\nDisallow: /no%1B%5D\n# {EVIL}\n\x0bAll clear\rAll clear\n"
            ),
            "/": page("/mime", "/phrase", "/garbage", "/moved", "/coded", "/no%1B", "/feed", "/x.pdf", text=text),
            "/mime": _mime(EVIL),
            "/phrase": b"HTTP/1.1 404 " + EVIL_BYTES + b"\r\nX-" + EVIL_BYTES + b": 1\r\nContent-Length: 0\r\n\r\n",
            "/garbage": b"HTTP/" + EVIL_BYTES + b"\r\n\r\n",
            "/moved": answer(status="302 Found", Location=f"http://me:{SECRET}@[{EVIL_BYTES.decode('latin-1')}"),
            "/coded": b"HTTP/1.1 200 OK\r\nContent-Encoding: " + EVIL_BYTES + b"\r\nContent-Length: 4\r\n\r\nhalf",
            "/feed": answer(f"<rss><channel><title>{EVIL[8:12]}</title></channel></rss>", mime="application/rss+xml",
                            Link=f'<http://hub{EVIL[5:8]}.test/>; rel="hub"'),
            "/x.pdf": answer(EVIL_BYTES, mime="application/pdf"),
        }.get(asked.path)  # fmt: skip

    web.site("evil.test", make)
    return url


def _mime(mime: str) -> bytes:
    body = b"<title>" + EVIL_BYTES + b"</title>" + b"some words about nothing at all " * 20
    head = b"HTTP/1.1 200 OK\r\nContent-Type: " + mime.encode() + b"\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Path]]:
    """A crawl of the evil site that has ended; the site goes on."""
    with arena(tmp_path_factory.mktemp("terminal")) as web:
        done = web.crawl(evil_site(web), settings={"HTTP_PROXY": ""})
        yield web, done.folder


def names() -> list[str]:
    """Every command of the project."""
    modules = [path.stem for path in sorted(COMMANDS.glob("*.py")) if path.stem != "__init__"]
    return [name for name in modules if hasattr(import_module(f"crawlerproject.commands.{name}"), "Command")]


def in_process(url: str, folder: Path) -> dict[str, list[list[str]]]:
    """Command lines on the crawl's folder, in an order in which they find what they need."""
    out = str(folder.parent)
    again = ["-s", f"CRAWL_DIR={out}/again"]
    no_redis = "STATE_URL=redis://:hunter2@127.0.0.1:1/0"
    return {
        "process": [[str(folder), "--wet", "--wat", "--workers", "1"]],
        "load": [[str(folder)]],
        "rank": [[str(folder)]],
        "export": [[str(folder)]],
        "search": [["words"], ["word"], ["title:All"]],
        "requests": [["evil.test"]],
        "lookup": [[f"{url}mime"], [f"{url}moved"], [f"{url}mime", "--cdxj"]],
        "robots": [[f"{url}mime"], [f"{url}mime", "--file", f"{out}/bad.txt"]],
        "why": [[f"{url}{path}"] for path in ("mime", f"no{EVIL}", "garbage", "moved", f"x{EVIL}")] + [[LISTED]],
        "hosts": [[]],
        "consent": [[]],
        "status": [[]],
        "traps": [[]],
        "audit": [[str(folder)], [f"{folder}{EVIL}"]],
        "reply": [["evil.test"]],
        "report": [[f"{out}/report.html"]],
        "botpage": [[], [f"{out}/bot.html"]],
        "samples": [[f"{out}/samples"]],
        "doctor": [[], ["-s", f"CRAWLER_INFO_URL={url}"]],
        "never": [["x.test", "--why", EVIL, "-s", f"NEVERCRAWL_FILE={out}/never.txt"]],
        "withdraw": [["x.test", "--why", EVIL, "-s", f"NEVERCRAWL_FILE={out}/never.txt"], ["--list"], [f"x{EVIL}"]],
        "forecast": [[f"{url},http://other.test/"], [f"x{EVIL}://"]],
        "add": [[url], [f"x{EVIL}://"]],
        "pause": [["evil.test"], [f"x{EVIL}"]],
        "resume": [["evil.test"], [f"x{EVIL}"]],
        "desk": [[f"{folder}{EVIL}"], [str(folder), "--port", "99999"]],
        "stop": [[], ["-s", f"CRAWL_DIR={folder}{EVIL}"]],
        "verify": [[str(folder)]],
        "verify-request": [*([f"{out}/evil.txt", "--url", url + path] for path in ("mime", EVIL)), [f"{out}/{EVIL}"]],
        "identity": [["init", f"https://{EVIL}"], ["check", "-s", f"IDENTITY_KEY_FILE={out}/{EVIL}"]],
        "index": [[str(folder)]],
        "recover": [[str(folder)]],
        "replay": [[str(folder), "--port", "0", "-s", "REPLAY_COMMAND=/bin/false"]],
        "wacz": [[str(folder), "-o", f"{out}/crawl.wacz"]],
        "upload": [[str(folder)], [str(folder), "-s", f"ARCHIVE_URL=file://{out}/far"]],
        "plan": [[f"{out}/plan.jsonl.gz", "--known", str(folder)]],
        "commoncrawl": [[source, "--fetch-records", *again] for source in (str(folder / "index"), f"{out}/bad.cdxj")],
        "state": [["copy", str(folder), no_redis.removeprefix("STATE_URL=")]],
        "fleet": [["-a", f"seeds={url}", "-s", no_redis], ["-a", "seeds=x"]],
    }  # fmt: skip


def of_their_own(web: Arena, folder: Path) -> dict[str, list[str]]:
    """Commands that run Scrapy's engine, which one process does only once."""
    url = web.url("evil.test", "/mime")
    return {
        "crawl": ["web", "-a", f"seeds=http://me:{SECRET}@evil.test:{web.port}/,http://[{EVIL}", "--loglevel=DEBUG"],
        "fetch": ["--headers", web.url("evil.test", "/garbage")],
        "parse": ["--nocolour", url],
        "reparse": ["web", str(folder)],
        "runspider": [f"{folder}/{EVIL}.py"],
        "view": [web.url("evil.test", f"/no{EVIL}")],
        "shell": ["-c", "print(page, page.title, response.text, response.headers)", url],
    }  # fmt: skip


def is_clean(text: str) -> bool:
    """No control character but newline and tab, nothing hidden, nothing that turns text round."""
    return printable(text) == text


def forged(text: str) -> list[str]:
    """Lines that a site has begun."""
    return [line for line in text.splitlines() if line.startswith(("All clear", "[2J"))]


def assert_harmless(done: Done, what: str) -> None:
    """Both streams, whatever the exit status."""
    for text in (done.stdout, done.stderr):
        assert is_clean(text), (what, text)
        assert forged(text) == [], what
        assert SECRET not in text, what


def test_no_command_lets_a_control_character_through(crawled: tuple[Arena, Path]) -> None:
    """Every command of the project on a crawl of hostile values; with ``--json`` its answer is JSON as well."""
    web, folder = crawled
    (folder.parent / "bad.txt").write_text(f"User-agent: *\nDisallow: /mime{EVIL}\nDisallow: /m\n")
    signed = f'Signature-Input: a=("{EVIL}")\nSignature: a=:AA==:\nSignature-Input: b=("x");keyid="{EVIL}"\n'
    (folder.parent / "evil.txt").write_text(f"GET /{EVIL} HTTP/1.1\nHost: evil.test{EVIL}\n{signed}")
    (folder.parent / "bad.cdxj").write_text("\n".join(f"test,evil)/ 2026 {{{EVIL}" for _ in range(20)))
    lines = in_process(web.url("evil.test"), folder)
    assert {*lines, *of_their_own(web, folder), "show"} == {*names()}, "a new command belongs into the table"

    seen = ""
    for name, calls in lines.items():
        parser = ArgumentParser(conflict_handler="resolve")
        command = import_module(f"crawlerproject.commands.{name}").Command()
        command.settings = get_project_settings()
        command.add_options(parser)
        for arguments in calls:
            where = [] if any(part.startswith("CRAWL_DIR=") for part in arguments) else ["-s", f"CRAWL_DIR={folder}"]
            identity = [part for key, value in IDENTITY.items() for part in ("-s", f"{key}={value}")]
            done = scrapy(name, *arguments, *where, *identity)
            assert_harmless(done, f"{name} {arguments}")
            assert "Traceback" not in done.stderr, done.stderr
            seen += done.stdout
            if "--json" in parser._option_string_actions and name != "reply":
                done = scrapy(name, *arguments, "--json", *where, *identity)
                assert_harmless(done, f"{name} {arguments} --json")
                if done.returncode in (0, 1) and done.stdout and name != "report":
                    documents(done.stdout)

    for told in ("\\x1b]0;owned\\x07", "\\u202e", "\\x9b31m"):
        assert told in seen, "the hostile values were not even there"
    harm = sum(not is_clean(line) for line in seen.splitlines())
    pays("escape sequences in every field", "the operator's terminal", harm, "lines with one", at_most=0)


def test_no_command_needs_more_than_ascii(crawled: tuple[Arena, Path]) -> None:
    """On a terminal that has no more (PYTHONIOENCODING=ascii) signs become plainer ones; no traceback, nothing lost."""
    web, folder = crawled
    seen = ""
    for name, calls in in_process(web.url("evil.test"), folder).items():
        where = ["-s", f"CRAWL_DIR={folder}"] if not any("CRAWL_DIR=" in part for part in calls[0]) else []
        done = scrapy(name, *calls[0], *where, "-s", "CRAWLER_CONTACT=a@b.c", encoding="ascii")
        assert "Traceback" not in done.stderr, (name, done.stderr)
        seen += done.stdout + done.stderr
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    for command in (["hosts"], ["crawl", "web", "-a", "seeds=…"]):
        ended = zygote.run(
            [sys.executable, "-m", "scrapy", *command, "-s", f"CRAWL_DIR={folder}"], env=environment, timeout=100
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        seen += ended.stdout + ended.stderr
    summary = zygote.run(
        [sys.executable, "-m", "crawlerproject.reports.summary", str(folder)], env=environment, timeout=100, check=True
    )

    assert (seen + summary.stdout).isascii()
    assert " x 200" in seen  # the letter's ×


def documents(text: str) -> list[object]:
    """One JSON document, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def test_no_command_that_fetches_lets_one_through(crawled: tuple[Arena, Path], tmp_path: Path) -> None:
    """crawl, fetch, parse, view and shell, at the same time; the crawl's log file as well."""
    web, folder = crawled
    fixed = {
        **IDENTITY, "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "PACE_PRESET": "mirror", "NEVERCRAWL_FILE": "", "RENDER": "never", "FRONTIER_MAX_REST_SECONDS": "1",
        "CRAWL_DIR": str(tmp_path / "crawl"), "RENDER_PROXIES": f"http://me:{SECRET}@127.0.0.1:1",
    }  # fmt: skip
    options = [part for name, value in fixed.items() for part in ("-s", f"{name}={value}")]
    running = {}
    for name, arguments in of_their_own(web, folder).items():
        command = [sys.executable, "-m", "scrapy", name, *arguments, *options]
        with (tmp_path / f"{name}.out").open("wb") as out, (tmp_path / f"{name}.err").open("wb") as err:
            running[name] = zygote.Process(command, out, stderr=err)

    for name, process in running.items():
        status = process.wait(60)
        output, errors = ((tmp_path / f"{name}.{stream}").read_bytes() for stream in ("out", "err"))
        done = Done(status, output.decode(errors="replace"), errors.decode(errors="replace"), output)
        assert_harmless(done, name)
        assert output + errors, name


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_a_body_is_exact_in_a_pipe_and_escaped_on_a_terminal(crawled: tuple[Arena, Path], raw: list[str]) -> None:
    """``show`` is for both: a program gets the bytes, a person what they look like."""
    web, folder = crawled
    arguments = ["show", web.url("evil.test", "/mime"), *raw, "-s", f"CRAWL_DIR={folder}"]

    piped = scrapy(*arguments)
    shown = on_a_terminal([sys.executable, "-m", "scrapy", *arguments])

    assert EVIL_BYTES in piped.output
    assert is_clean(shown), shown
    assert "<title>\\x1b]0;owned\\x07\\x1b[2J\\x1b[HAll clear\\x9b31m\\u202ezyx" in shown


def test_scrapys_own_commands_are_guarded_too(crawled: tuple[Arena, Path]) -> None:
    """The guard stands before whatever prints: settings show no password, an argument that is none is escaped."""
    shown = scrapy("settings", "--get", "STATE_URL", "-s", f"STATE_URL=redis://me:{SECRET}@h/0")
    refused = scrapy("list", f"--{EVIL}=1", "--logfile")

    assert shown.stdout == "redis://me:***@h/0\n"
    assert_harmless(refused, "list")


def on_a_terminal(command: list[str]) -> str:
    """What a terminal is sent, its line ends as Python's."""
    mine, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=PROJECT, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        sent = b""
        while True:
            try:
                piece = os.read(mine, 65536)
            except OSError:  # the other end is closed
                break
            sent += piece
        process.wait(60)
    os.close(mine)
    return sent.decode(errors="replace").replace("\r\n", "\n")


# --- the doors ----------------------------------------------------------------------------------


def test_commands_print_through_one_door() -> None:
    """No command calls print or writes text to a stream by itself: ``say`` escapes what ``print`` would not."""
    found = []
    package = COMMANDS.parent
    for path in [*COMMANDS.glob("*.py"), *(package / "inspection").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "sys.stdout.write", "sys.stderr.write", "Console", "rich.print"):
                    found.append(f"{path.name}: {called}")

    assert found == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain äöü 漢字 😀 e\u0301", "plain äöü 漢字 😀 e\u0301"),
        ("\x1b[31m\x07\x00\x7f", "\\x1b[31m\\x07\\x00\\x7f"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202e\u2066\u200b\u200d\u2028\u2029\ufeff\xad", "\\u202e\\u2066\\u200b\\u200d\\u2028\\u2029\\ufeff\\xad"),
        ("\ud800 \udcff", "\\ud800 \\udcff"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_a_value_in_one_line(text: str, line: str) -> None:
    """Letters of all scripts stay; what moves, hides or re-orders is escaped, and JSON means the same."""
    assert printable_line(text) == line
    assert is_clean(line)
    told = json_text({"value": text})
    assert is_clean(told)
    assert json.loads(told) == {"value": text}
    assert json.loads(printable_json(json.dumps(text, ensure_ascii=False))) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('redis://h?password=a"b', 'redis://h?password=***"b'),
        (r'{"a":"redis://h?password=a\"b"}', r'{"a":"redis://h?password=***\"b"}'),
        ("redis://me:hunter2@h:1/0", "redis://me:***@h:1/0"),
        ("via http://:p@ss@proxy:3128, again http://u:p@q/", "via http://:***@proxy:3128, again http://u:***@q/"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("at redis://h/0?password=hunter2&x=1 now", "at redis://h/0?password=***&x=1 now"),
        ("rediss+sentinel://:a@h/m?sentinel_password=b", "rediss+sentinel://:***@h/m?sentinel_password=***"),
        ("http://h/?password=what-a-page-calls-so", "http://h/?password=what-a-page-calls-so"),
        ("mail me@example.org: now", "mail me@example.org: now"),
        ("http://h/?q=a:b@c", "http://h/?q=a:b@c"),
    ],
)
def test_passwords_in_addresses(text: str, shown: str) -> None:
    """The user stays, the password goes; what only looks like one is left alone."""
    assert without_passwords(text) == shown


@pytest.mark.parametrize("text", ['redis://h?password=a"b', "redis://h?x=\\&password=c\\", "http://u:p\\@h"])
def test_what_loses_its_password_is_still_json(text: str) -> None:
    """A quote or a backslash beside it takes no sign of JSON's along."""
    shown = json.loads(json_text({"value": text, "next": 1}))

    assert shown["next"] == 1
    assert "***" in shown["value"]


@pytest.mark.parametrize("piece", ["://", "://a:", "://a:b", "a:@", "\x1b", "://a:b://"])
def test_escaping_is_linear(piece: str) -> None:
    """Half a megabyte of anything costs little: four times as much costs about four times."""
    from time import process_time

    def spent(count: int) -> float:
        text = piece * count + "@"
        began = process_time()
        printable_line(without_passwords(text))
        return process_time() - began

    spent(1000)
    assert spent(400_000) < 40 * max(spent(40_000), 0.001)


def test_a_log_record_is_one_line_and_its_traceback_stands_below() -> None:
    """Neither a value nor the text of an exception begins a line of the log, or colours one."""
    raised = ValueError(f"bad\n2026-01-01 00:00:00 [crawl] INFO: All clear {EVIL}")
    record = GuardedRecord(
        "crawlerproject.x", logging.ERROR, "x.py", 1, "no %s of http://u:hunter2@h/", (f"a\nb{EVIL}",),
        (ValueError, raised, None),
    )  # fmt: skip

    lines = logging.Formatter("%(levelname)s %(message)s").format(record).split("\n")

    assert lines[0].startswith("ERROR no a\\nb\\x1b]0;")
    assert "hunter2" not in lines[0]
    assert all(line.startswith("  ") for line in lines[1:])
    assert is_clean("\n".join(lines))


def test_the_panel_has_no_markup_and_no_escapes() -> None:
    """A reason to pause may name a file or an error; the panel shows it as it is written."""
    terminal = _Terminal()
    before, sys.stderr = sys.stderr, GuardedStream(terminal)
    try:
        display = LiveDisplay(f"scrapy crawl {LISTED}[red]")
        display.start()
        display.show([f"paused: [link=http://e.test]x[/link] {EVIL[:30]}"])
        print(EVIL, file=sys.stderr)
        display.stop()
    finally:
        sys.stderr = before

    shown = terminal.getvalue()
    assert f"{LISTED}[red]" in shown
    assert "[link=http://e.test]x[/link] \\x1b]0;owned\\x07" in shown
    assert "\x1b]0;" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True
