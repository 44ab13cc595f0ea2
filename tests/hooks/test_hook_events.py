"""Which events a crawl brings, by looks at moments that the test makes up."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from crawlerproject.hooks.hook_events import (
    ERRORS_APART_SECONDS,
    Delivery,
    Event,
    Hook,
    Look,
    Watch,
    deliver_all,
    hook_of,
)
from tests.web.waiting import busyness


def event(name: str) -> dict[str, object]:
    """An event with nothing to say."""
    return {"event": name, "reason": "why", "counts": {}}


class Listener(ThreadingHTTPServer):
    """Collects what is posted; ``answers`` are the statuses it gives, the last one for ever."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, dict[str, object]]] = []
        self.answers = [204]
        self.seconds = 0.0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:  # the library's name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.headers["Content-Type"], json.loads(body)))
        time.sleep(self.server.seconds)
        status = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *what: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A listener in a thread."""
    with Listener() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_url_gets_json_and_a_failure_is_tried_again(listener: Listener, caplog: pytest.LogCaptureFixture) -> None:
    """503, a redirect (which would be a GET), then well: three POSTs of one event, two pauses, two lines."""
    listener.answers = [503, 302, 200]
    pauses: list[float] = []

    deliver_all(hook_of("", listener.url, 5), event("paused"), pauses.append)

    assert [said["event"] for _, said in listener.got] == ["paused", "paused", "paused"]
    assert {kind for kind, _ in listener.got} == {"application/json"}
    assert pauses == [1.0, 5.0]
    assert "HTTP Error 503" in caplog.text
    assert "HTTP Error 302" in caplog.text


def test_a_command_gets_json_and_the_event_without_a_shell(tmp_path: Path) -> None:
    """On standard input, in the environment, its arguments as they are; what it leaves behind is not waited for."""
    told = tmp_path / "told"
    script = tmp_path / "hook.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "subprocess.Popen(['sleep', '60'])\n"
        "open(sys.argv[1], 'a').write(os.environ['CRAWL_EVENT'] + ' ' + sys.argv[2] + ' ' + sys.stdin.read())\n"
    )
    began = time.monotonic()

    deliver_all(hook_of(f"{sys.executable} {script} {told} '$HOME; a b'", "", 20), event("ended"), time.sleep)

    assert time.monotonic() - began < 15 * busyness()
    name, _, rest = told.read_text().partition(" ")
    assert name == "ended"
    assert rest.startswith("$HOME; a b ")
    assert json.loads(rest[rest.index("{") :]) == event("ended")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{sys.executable} -c \"import sys; sys.exit('no\\nroom')\"", "exit status 1: no room"),
        ("/no/such/program", "No such file"),
        ("sleep 60", "no end within 0.3 s"),
    ],
)
def test_a_broken_command_is_given_up(command: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    """Three tries, each with its reason, then one line that says so."""
    deliver_all(hook_of(command, "", 0.3 if "sleep" in command else 20), event("silent"), lambda _: None)

    assert caplog.text.count(said) == 3
    assert "HOOK_COMMAND on silent failed 3 times and is given up." in caplog.text


def test_the_end_is_delivered_and_never_waits_for_ever(listener: Listener, caplog: pytest.LogCaptureFixture) -> None:
    """Behind a hook that hangs: the newest events are tried once, the last one is there, the rest is counted."""
    listener.seconds = 0.4
    delivery = Delivery(Hook((), listener.url, 0.2), lambda _: None)
    for number in range(150):
        delivery.send(event(f"e{number}"))
    began = time.monotonic()

    delivery.close(event("ended"))

    assert time.monotonic() - began < 30 * busyness()
    assert listener.got[-1][1]["event"] == "ended"
    assert "is not delivered" in caplog.text
    assert "before the last not delivered" in caplog.text


@pytest.mark.parametrize(
    ("command", "url", "said"),
    [("mail 'me", "", "HOOK_COMMAND"), ("", "ftp://x/", "HOOK_URL"), ("", "example.org/hook", "HOOK_URL")],
)
def test_what_can_be_no_hook_is_refused(command: str, url: str, said: str) -> None:
    """One sentence with the setting's name."""
    with pytest.raises(ValueError, match=said):
        hook_of(command, url, 10)


def look(pages: int = 0, halted: str = "", errors: int = 0, free: float | None = 3.0) -> Look:
    """A crawl at one moment."""
    return Look(halted, pages, errors, free)


def test_a_pause_is_said_once_and_its_end_too() -> None:
    """Another reason within one pause is no other pause."""
    watch = Watch(0)

    said = [watch.look(look(halted=halted), at) for at, halted in enumerate(["", "disk", "disk", "more", "", ""])]

    assert said == [[], [Event("paused", "disk")], [], [], [Event("resumed", "more")], []]


def test_silence_is_said_once_until_there_is_a_page_again() -> None:
    """Not while the crawl is paused; the time counts from the last page, or from the pause's end."""
    watch = Watch(900)
    looks = [(0, look(5)), (899, look(5)), (900, look(5)), (2000, look(5)), (2001, look(6)), (2901, look(6, free=None))]

    said = [[event.name for event in watch.look(now, at)] for at, now in looks]
    reason = Watch(10)
    reason.look(look(1), 0)

    assert said == [[], [], ["silent"], [], [], ["silent"]]
    assert reason.look(look(1, free=59.0), 12) == [
        Event("silent", "no page for 12 s; the next host may be asked in 59 s")
    ]
    paused = Watch(10)
    assert [paused.look(look(1, halted="disk"), at)[1:] for at in (0, 50, 100)] == [[], [], []]
    assert [event.name for event in paused.look(look(1), 105)] == ["resumed"]
    assert [event.name for event in paused.look(look(1), 110)] == ["silent"]


def test_errors_come_together() -> None:
    """The first at once, those of the next minute in one word."""
    watch = Watch(0)

    assert watch.look(look(errors=1), 0) == [Event("error", "1 error of the program itself, see log/errors.log")]
    assert watch.look(look(errors=4), ERRORS_APART_SECONDS - 1) == []
    assert [event.reason[:8] for event in watch.look(look(errors=5), ERRORS_APART_SECONDS)] == ["4 errors"]
    assert watch.look(look(errors=5), 3 * ERRORS_APART_SECONDS) == []
