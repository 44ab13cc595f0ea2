"""``scrapy desk [FOLDER]``: crawls in a browser, with the operator's orders to them, behind a token."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.config.crawl_kind import CRAWLS
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import OperatorCommand, option
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.desk.desk_views import Desk, Ran
    from crawlerproject.desk.door import Door

_PORT = 8770
_TOKEN_BYTES = 32
_ORDER_SECONDS = 120.0  # of a command; those that wait for a crawl wait for some fifteen


class Command(OperatorCommand):
    """A process of its own: it reads the crawls' folders and runs our commands, and a crawl knows nothing of it."""

    arguments = "[FOLDER] [--port N] [--address IP]"
    summary = "Show crawls in a browser, and take orders to them there: pause, stop, add seeds, never"
    details = (
        "Serve a desk for the crawls in FOLDER, or for the one whose folder it is (default: CRAWL_DIR, or crawls): "
        "their state, and the orders pause, resume, stop, add and never. Prints its address and the password of this "
        "start. Ctrl-C ends the desk and no crawl. Example: scrapy desk crawls --port 8770"
    )

    options = (
        option("--port", type=int, default=_PORT, help=f"default: {_PORT}; 0: one that is free"),
        option("--address", default="127.0.0.1", metavar="IP", help="default: 127.0.0.1, this machine alone"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Serve until a signal comes."""
        from crawlerproject.commands.why import found_of, lines
        from crawlerproject.desk.desk_views import Desk
        from crawlerproject.desk.door import Door

        if len(args) > 1:
            raise OperatorError("Give one folder, for example: scrapy desk crawls")
        root = Path(args[0] if args else str(self.settings["CRAWL_DIR"] or CRAWLS))
        if not root.is_dir():
            raise OperatorError(f"There is no folder {root}; name a crawl's folder, or one with such folders in it.")
        given = [part for pair in opts.set for part in ("-s", pair) if not pair.startswith("CRAWL_DIR=")]
        desk = Desk(root, self.settings, partial(run_command, given), lambda crawl, text: lines(found_of(crawl, text)))
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        try:
            ip_address(opts.address)
            door = Door(opts.address, opts.port, token, desk.answer)
        except ValueError:
            raise OperatorError(f"--address is {opts.address!r}; use an IP address.") from None
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "there is no such port"
            raise OperatorError(f"{opts.address} port {opts.port}: {why}; choose another with --port.") from error
        desk.word = door.form_word
        serve(door, desk, token)


def serve(door: Door, desk: Desk, token: str) -> None:
    """Say where, and serve until a signal comes."""
    from crawlerproject.desk.door import until_signal

    with until_signal(door):
        if door.beyond_loopback:
            say(
                f"The desk listens beyond this machine ({door.home}), without encryption: its token can be read on the "
                "way, and then anyone may give orders. Leave it on 127.0.0.1 and use ssh -L.",
                error=True,
            )
        say(f"{door.home} is the desk; Ctrl-C ends it. User: desk", f"Password: {token}")
        sys.stdout.flush()
        threading.Thread(target=desk.sample, daemon=True).start()
        door.serve_forever()


def run_command(given: Sequence[str], folder: Path, arguments: Sequence[str]) -> Ran:
    """Run a command of ours as the operator would, with the settings that the desk was given, and wait for its end."""
    from crawlerproject.desk.desk_views import Ran  # Scrapy imports every command at each start

    began = time.time()
    command = [sys.executable, "-m", "scrapy", *arguments, *given, "-s", f"CRAWL_DIR={folder}"]
    paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=_ORDER_SECONDS, text=True, errors="replace", env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        status, output = 1, f"It was not done after {_ORDER_SECONDS:.0f} s; look at the crawl's log."
    else:
        status, output = ended.returncode, ended.stdout
    return Ran(shlex.join(["scrapy", *arguments]), began, status, output)
