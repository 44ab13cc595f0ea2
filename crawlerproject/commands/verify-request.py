"""``scrapy verify-request FILE``: whether a request that a server has logged was the crawler's."""

from __future__ import annotations

import argparse

from crawlerproject.config.values import own_keys
from crawlerproject.errors import OperatorError
from crawlerproject.fetch.key_directory import keys_of
from crawlerproject.inspection.identity_checks import Known, agent_of, judge, moment_of, pasted, read_request
from crawlerproject.operator_command import InspectCommand, one_argument, option
from crawlerproject.rules.identity.message_signatures import Message
from crawlerproject.terminal import say, say_json

# Lines of the request log that are printed.
_SHOWN = 20


class Command(InspectCommand):
    """Exit status 0 when it was, 1 when not. Without own keys: of the crawler that it names."""

    arguments = "FILE|- [--url URL] [--json]"
    summary = "Whether pasted request headers were ours: signature, time, the line of the request log"

    example = "scrapy verify-request headers.txt --url https://example.org/page"

    options = (option("--url", metavar="URL", default="", help="that was asked for, where the headers do not say it"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        message = read_request(pasted(one_argument(args, "a file with request headers, or -", self.example)), opts.url)
        known = self._known(message)
        try:
            folders = [] if known.publisher else self.look().folders
        except OperatorError as error:
            folders = []
            say(f"No request log is compared: {error}", error=True)
        found = judge(message, known, folders)
        self.exitcode = 0 if found.ours else 1
        if opts.json:
            signatures = [{**proof._asdict(), "span": proof.span._asdict()} for proof in found.signatures]
            say_json({"ours": found.ours, "why": found.sentence, "signatures": signatures, "logged": found.logged})
            return
        for proof in found.signatures:
            times = f"made {moment_of(proof.span.created)}, good until {moment_of(proof.span.expires)} UTC"
            say(f"{proof.label}: key {proof.keyid or '(none)'}, {times}, covers {' '.join(proof.covers)}")
            say(f"    {proof.flaw or 'good'}")
        for row in found.logged[:_SHOWN]:
            say(f"{row['time'][:23].replace('T', ' ')} {row['status'] or row['reason']}  {row['url']} from {row['ip']}")
        if len(found.logged) > _SHOWN:
            say(f"… and {len(found.logged) - _SHOWN:,} more")
        say(found.sentence)

    def _known(self, message: Message) -> Known:
        """Our keys; without any, those of the crawler that the request names, as the owner of a site wants them."""
        if (ring := own_keys(self.settings)) is not None:
            return Known(ring.public_keys())
        agent = agent_of(message)
        return Known(keys_of(agent, self.settings), agent) if agent else Known({})
