"""``scrapy verify-request FILE``: whether a request that a server has logged was the crawler's."""

from __future__ import annotations

import argparse

from crawlerproject.config.values import own_keys
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.request_proof import judge, moment_of, pasted, read_request
from crawlerproject.operator_command import InspectCommand, one_argument, option
from crawlerproject.terminal import say, say_json

# Lines of the request log that are printed.
_SHOWN = 20


class Command(InspectCommand):
    """Exit status 0 when it was, 1 when not."""

    arguments = "FILE|- [--url URL] [--json]"
    summary = "Whether pasted request headers were ours: signature, time, the line of the request log"

    example = "scrapy verify-request headers.txt --url https://example.org/page"

    options = (option("--url", metavar="URL", default="", help="that was asked for, where the headers do not say it"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        message = read_request(pasted(one_argument(args, "a file with request headers, or -", self.example)), opts.url)
        ring = own_keys(self.settings)
        try:
            folders = self.look().folders
        except OperatorError as error:
            folders = []
            say(f"No request log is compared: {error}", error=True)
        found = judge(message, ring, folders)
        self.exitcode = 0 if found.ours else 1
        if opts.json:
            signatures = [{**proof._asdict(), "span": proof.span._asdict()} for proof in found.signatures]
            say_json({"ours": found.ours, "why": found.sentence, "signatures": signatures, "logged": found.logged})
            return
        for proof in found.signatures:
            times = f"made {moment_of(proof.span.created)}, good until {moment_of(proof.span.expires)} UTC"
            say(f"{proof.label}: key {proof.keyid or '(none)'}, {times}, covers {' '.join(proof.covers)}")
            say(f"    {proof.flaw or 'good, with our key'}")
        for row in found.logged[:_SHOWN]:
            say(f"{row['time'][:23].replace('T', ' ')} {row['status'] or row['reason']}  {row['url']} from {row['ip']}")
        if len(found.logged) > _SHOWN:
            say(f"… and {len(found.logged) - _SHOWN:,} more")
        say(found.sentence)
