"""``scrapy identity``: the key that signs requests, and the directory by which sites know it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.http1 import RequestWriter, parse_target
from crawlerproject.fetch.key_directory import advice, flaws, served_directory
from crawlerproject.fetch.signing import COVERS, Signer
from crawlerproject.inspection.identity_checks import moment_of, read_request
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.rules.identity.key_ring import (
    CLOCK_SECONDS,
    DIRECTORY_PATH,
    LEAD_SECONDS,
    KeyRing,
    agent_of,
    new_key,
)
from crawlerproject.rules.identity.message_signatures import proofs
from crawlerproject.stores.operator_files.key_file import DEFAULT_FILE, read_keys, write_directory, write_keys
from crawlerproject.stores.operator_files.user_settings import user_path
from crawlerproject.terminal import say, say_json

_FOLDER = "public"
# Any request will do.
_SAMPLE = "https://example.org/page?of=the+web"


class Command(InspectCommand):
    """The key stays in its file, which only its owner may read."""

    arguments = "init https://ORIGIN [FOLDER] | rotate [FOLDER] [--now] | check [--json]"
    summary = "Make or rotate the key that signs requests (Web Bot Auth), and check that sites can verify it"

    example = "scrapy identity init https://bot.example public/"

    options = (option("--now", action="store_true", help="rotate: sign with the new key at once, not in a day"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        path = Path(user_path(str(self.settings.get("IDENTITY_KEY_FILE") or DEFAULT_FILE))).absolute()
        match args:
            case ["init", origin, *folder] if len(folder) < 2:
                self._init(path, origin, Path(*folder or [_FOLDER]))
            case ["rotate", *folder] if len(folder) < 2:
                self._rotate(path, Path(*folder or [_FOLDER]), at_once=opts.now)
            case ["check"]:
                self._check(path, as_json=opts.json)
            case _:
                raise OperatorError(f"Give init and an origin, rotate, or check, for example: {self.example}")

    def _init(self, path: Path, origin: str, folder: Path) -> None:
        try:
            agent = agent_of(origin)
        except ValueError as error:
            raise OperatorError(f"{error}; give the origin where the key directory will be.") from None
        if path.exists():
            raise OperatorError(f"{path} is there; run scrapy identity rotate for another key, or move it away.")
        now = time.time()
        ring = KeyRing(agent, (new_key(Ed25519PrivateKey.generate(), now),))
        write_keys(path, ring)
        _publish(folder, ring, now)
        say(
            f"The key {ring.keys[0].keyid} is in {path}: keep it to yourself, and keep a copy.",
            f'Then set IDENTITY_KEY_FILE = "{path}" where all crawls and workers have it (settings.toml), and run '
            "scrapy identity check.",
        )

    def _rotate(self, path: Path, folder: Path, *, at_once: bool) -> None:
        ring, now = read_keys(path), time.time()
        waiting = ring.keys[-1]
        if waiting.signs_from > now and not at_once:
            when = moment_of(waiting.signs_from)
            raise OperatorError(
                f"The key {waiting.keyid} waits until {when} UTC to sign; --now makes one that signs now."
            )
        ring = ring.rotated(now, new_key(Ed25519PrivateKey.generate(), now if at_once else now + LEAD_SECONDS))
        write_keys(path, ring)
        _publish(folder, ring, now)
        new, old = ring.keys[-1], ring.keys[-2]
        say(
            f"The key {new.keyid} signs from {moment_of(new.signs_from)} UTC on; running crawls take it up within an "
            "hour of that.",
            f"After {moment_of(old.leaves_at)} UTC run scrapy botpage again, which leaves the key {old.keyid} out.",
        )

    def _check(self, path: Path, *, as_json: bool) -> None:
        ring, now = read_keys(path), time.time()
        signing = ring.signing(now)
        problems = [*_unlike_itself(ring)]
        hints: list[str] = []
        try:
            served = served_directory(self.settings, ring)
            problems += flaws(served, ring, now)
            hints += advice(served, ring, now) if not problems else ()
        except OSError as error:
            problems.append(f"{ring.agent}{DIRECTORY_PATH} cannot be had: {error}")
        self.exitcode = 1 if problems else 0
        if as_json:
            say_json({"agent": ring.agent, "keyid": signing.keyid, "problems": problems, "advice": hints})
            return
        say(f"{path}: {len(ring.published(now))} keys of {ring.agent}; {signing.keyid} signs")
        say(*problems, *hints, error=True)
        if not problems:
            say("Key, directory, clock and a signed request are well: sites can verify who asks.")


def _publish(folder: Path, ring: KeyRing, now: float) -> None:
    directory, headers = write_directory(folder, ring, now)
    say(
        f"Publish {directory} as {ring.agent}{DIRECTORY_PATH}, with the headers that {headers} has for it (its media "
        "type is required, its signature recommended)."
    )


def _unlike_itself(ring: KeyRing) -> list[str]:
    """What a verifier would say to a request that is signed with the keys as they are."""
    target, found = parse_target(_SAMPLE), []
    for word, covers in COVERS.items():
        sent = RequestWriter("", Signer(lambda: ring, covers).fields).write("GET", target, {}, b"")
        (proof,) = proofs(read_request(sent.decode("ascii"), _SAMPLE), ring.public_keys())
        if why := proof.flaw or proof.at(time.time(), CLOCK_SECONDS):
            found.append(f"A request signed by {word} is not verified: {why}.")
    return found
