"""``scrapy forecast``: before the first request, how long politeness alone will take."""

from __future__ import annotations

import argparse
import random
from collections import Counter

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.gates import never_crawl_of
from crawlerproject.frontier.progress import human_seconds
from crawlerproject.middlewares.pace_settings import preset_of
from crawlerproject.onlooker import LookingCommand, one_argument
from crawlerproject.preflight import check_known, crawl_folder, seeds_and_scope
from crawlerproject.rules.hosts import host_name
from crawlerproject.rules.pace import delay_seconds
from crawlerproject.stores.looking import FrontierView
from crawlerproject.terminal import say, say_json

# Pages of each host for which the time is told, beside the seeds alone.
_EXAMPLES = (100, 1_000, 10_000)
# Budgets of a recrawl that are told without being asked: visits a day as shares of the known pages.
_BUDGET_SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)


def _budgets(pages: int, asked: list[int] | None) -> list[int]:
    if asked and min(asked) < 1:
        raise OperatorError("--budget must be at least 1.")
    return asked or sorted({max(1, round(pages * share)) for share in _BUDGET_SHARES})


class Command(LookingCommand):
    """Sends nothing; needs no crawl folder."""

    example = "scrapy forecast seeds.txt --pages 500"

    def syntax(self) -> str:
        return "[SEEDS] [--pages N] [--json] | --recrawl [--budget N]"

    def short_desc(self) -> str:
        return "How long politeness alone will take, before the first request"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--pages", type=int, action="append", metavar="N", help="pages of each host; may be given again"
        )

        parser.add_argument("--recrawl", action="store_true", help="what visits to known pages buy (of CRAWL_DIR)")
        parser.add_argument("--budget", type=int, action="append", metavar="N", help="with it: visits a day")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.recrawl:
            self._recrawl(opts)
            return
        known = [self.crawl_file.seeds] if self.crawl_file is not None and self.crawl_file.seeds else []
        text = one_argument(args or known, "a file of seeds, or URLs separated by commas", self.example)
        assert self.settings is not None
        addresses, _ = seeds_and_scope(text, "any")
        never = never_crawl_of(self.settings).current(0.0)
        excluded = sum(never.excludes(host_name(seed.host)) for seed in addresses)
        hosts = Counter(seed.host for seed in addresses if not never.excludes(host_name(seed.host)))
        if not hosts:
            raise OperatorError("All seeds are on the NeverCrawl list; there is nothing to forecast.")
        pace = delay_seconds(preset_of(self.settings), ())
        largest, most = hosts.most_common(1)[0]
        counts = [most, *(opts.pages or [count for count in _EXAMPLES if count > most])]
        if any(count < 1 for count in counts):
            raise OperatorError("--pages must be at least 1.")
        facts = {
            "seeds": len(addresses),
            "excluded": excluded,
            "hosts": len(hosts),
            "largest_host": largest,
            "largest_host_seeds": most,
            "pace_seconds": pace,
            "pages_per_second_at_most": round(len(hosts) / pace, 3) if pace else None,
            "seconds_by_pages_of_each_host": {str(count): count * pace for count in counts},
        }
        if opts.json:
            say_json(facts)
            return
        say(f"{len(addresses):,} seeds on {len(hosts):,} hosts ({excluded:,} excluded by the NeverCrawl list)")
        say(f"Pace: one request to a host every {human_seconds(pace)} before its response times are known")
        if pace:
            say(f"So at most {len(hosts) / pace:,.1f} pages/s, while all hosts have work")
        say(f"The seeds alone: at least {human_seconds(most * pace)} ({largest} has {most:,} of them)")
        for count in counts[1:]:
            say(f"{count:,} pages of each host: at least {human_seconds(count * pace)}")
        say("robots.txt comes first and counts as a page of its host; a Crawl-delay or a slow server makes it longer.")

    def _recrawl(self, opts: argparse.Namespace) -> None:
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.recrawl_forecast import forecast, known_beliefs

        assert self.settings is not None
        folder = crawl_folder(self.settings, "web")
        check_known(self.settings)
        with FrontierView(folder / "frontier") as view:
            pages, beliefs = known_beliefs(view, random.Random(1))
        if not pages:
            raise OperatorError(f"No page of {folder} was read yet; there is nothing to visit again.")
        rows = [forecast(beliefs, pages, budget) for budget in _budgets(pages, opts.budget)]
        if opts.json:
            say_json({"pages": pages, "budgets": [row._asdict() for row in rows]})
            return
        say(f"{pages:,} known pages. Share that is as archived, on average, in the long run:")
        for row in rows:
            say(f"{row.visits_a_day:>9,} visits a day: {row.fresh:6.1%}  (all equally often: {row.even:.1%})")
