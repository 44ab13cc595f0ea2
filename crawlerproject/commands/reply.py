"""``scrapy reply HOST``: a courteous answer to a site's owner, with the facts filled in."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from statistics import median

from crawlerproject.config.values import identity, own_keys
from crawlerproject.errors import OperatorError
from crawlerproject.frontier.assembly import never_crawl_of
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.identity_checks import Judgement, Known, judge, pasted, read_request
from crawlerproject.inspection.robots_opinions import then_and_now
from crawlerproject.operator_command import SPAN, InspectCommand, one_argument, option, span_of
from crawlerproject.reports.summary import HostStory, bare_host, host_story
from crawlerproject.rules.printable import counted, human_bytes, human_seconds
from crawlerproject.terminal import say


class Command(InspectCommand):
    """A draft: read it before you send it."""

    arguments = "HOST [--since TIME] [--until TIME] [--request FILE|-]"
    summary = "Draft the answer to a site's owner from the request log"

    example = "scrapy reply example.org --since 2026-01-31"

    options = (
        *SPAN,
        option("--request", metavar="FILE", default="", help="request headers that they sent: were they ours?"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.json:
            raise OperatorError("A letter has no JSON; scrapy requests HOST --json has the facts.")
        host = bare_host(one_argument(args, "a host", self.example))
        crawl = self.look()
        story = host_story(crawl.folders, host, *span_of(opts), subdomains=True)
        listed = never_crawl_of(crawl.settings).current(0.0).excludes(story.host)
        ring = own_keys(crawl.settings) if opts.request else None
        known = Known(ring.public_keys() if ring is not None else {})
        seen = judge(read_request(pasted(opts.request)), known, crawl.folders) if opts.request else None
        say(*"\n\n".join(message(crawl, story, seen, listed=listed)).split("\n"))
        if not listed:  # apart from the letter, which may go straight into a mail program
            say(f'To put it on the list now: scrapy never {story.host} --why "asked by their webmaster"', error=True)


def message(crawl: CrawlView, story: HostStory, seen: Judgement | None = None, *, listed: bool) -> Iterator[str]:
    """Paragraphs; ``listed``: the host is excluded by now. ``seen``: what was found of a request that they sent."""
    who = identity(crawl.settings)
    info, contact = crawl.settings["CRAWLER_INFO_URL"], crawl.settings["CRAWLER_CONTACT"]
    yield f"Subject: {who.token} at {story.host}"
    yield f"Hello,\n\nthank you for writing about {story.host}."
    if not story.reached:
        yield (
            f"We looked through our request log of the last {crawl.settings['LOG_KEEP_DAYS']} days: {who.token} "
            f"has not asked {story.host} for anything. Another program may use our name. If you send us some lines of "
            "your log (address, time, User-Agent), we shall look again."
        )
    else:
        yield _what_was_asked(who.token, story)
        yield _robots(who.token, crawl, story)
    if seen is not None:
        yield _of_request(seen)
    if listed:
        yield f"{story.host} and all names below it are on our list of sites that are never asked again."
    else:
        yield f"If you wish, we put {story.host} on the list of sites that are never asked again; a word is enough."
    yield f"Our crawler calls itself\n\n    {who.user_agent}" + (f"\n\nand is explained at {info}." if info else "")
    yield f"We are sorry for the trouble.\n\n{contact or '(your name)'}"


def _what_was_asked(token: str, story: HostStory) -> str:
    first, last = (story.reached[at].attempt["time"][:16].replace("T", " ") for at in (0, -1))
    answers = Counter(str(visit.attempt["status"] or visit.attempt["reason"]) for visit in story.reached)
    counts = ", ".join(f"{count:,} × {name}" for name, count in answers.most_common(4))
    text = (
        f"Yes, that was us: between {first} and {last} UTC {token} made {counted(len(story.reached), 'request')}, "
        f"one at a time, and received {human_bytes(story.received_bytes)} ({counts})."
    )
    if story.pauses:
        # Not the mean: one night between two starts would be in it.
        shortest, usual = min(story.pauses), median(story.pauses)
        text += (
            f" Between two requests it paused {human_seconds(usual)} as a rule, never under {human_seconds(shortest)}."
        )
    if story.too_soon:
        short = counted(story.too_soon, "of these pauses was", "of these pauses were")
        text += f" {short} shorter than we promise; we are looking into that."
    return text


def _of_request(seen: Judgement) -> str:
    if not seen.ours:
        return f"The request that you sent us was not ours. {seen.sentence}"
    first = seen.logged[0]["time"][:19].replace("T", " ")
    return f"The request that you sent us was ours: it is signed with our key, and in our request log at {first} UTC."


def _robots(token: str, crawl: CrawlView, story: HostStory) -> str:
    then, _ = then_and_now(crawl.folders, story.origins, story.began)
    if then:
        seen = f"{then[-1].origin}/robots.txt", then[-1].moment
    else:  # its archive may be elsewhere by now
        own = {f"{origin}/robots.txt" for origin in story.origins}
        asked = (visit.attempt for visit in story.reached if visit.attempt["url"] in own)
        found = next((each for each in asked if each["status"] == 200), None)
        if found is None:
            return "Your server gave us no robots.txt, which permits everything (RFC 9309)."
        seen = found["url"], f"{found['time'][:19].replace('T', ' ')} UTC"
    return (
        f"It went by {seen[0]} as we saw it on {seen[1]}. "
        f'To slow it, add "User-agent: {token}" and "Crawl-delay: 30" there; to stop it, "Disallow: /".'
    )
