"""``scrapy search``: what the loaded pages say about some words."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import OperatorCommand, option
from crawlerproject.rules.answer_order import Weights
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.terminal import say, say_json

if TYPE_CHECKING:
    from crawlerproject.desk.search_page import Find


class Command(OperatorCommand):
    """Asks the full-text index."""

    arguments = "WORDS [--folder FOLDER] [--limit N] [--host HOST] [--language CODE] [--json] | --serve PORT"
    summary = "Search the loaded pages"
    details = (
        'Print the pages that answer a query best, with a snippet. Words, "a phrase", +must, -not and title:word are '
        "understood; a word that no page has is taken for the likest one. Of near duplicates one is shown, of a host "
        "two before those of others. --serve answers in a browser; archived copies are shown there while scrapy replay "
        'runs. Exit status 1 when nothing is found. Example: scrapy search "write ahead log" --limit 5'
    )

    options = (
        option("--folder", type=CrawlDir, help="the crawl's folder (default: CRAWL_DIR)"),
        option("--limit", type=int, default=10, help="answers at most (default: 10)"),
        option("--host", default="", help="of this host alone"),
        option("--language", default="", metavar="CODE", help="in this language alone: en, de (ISO 639-1)"),
        option("--page-rank", type=float, default=Weights().page, metavar="N",
               help=f"share of a text's score that its page's rank may add (default: {Weights().page})"),
        option("--host-rank", type=float, default=Weights().host, metavar="N",
               help=f"the same of its host's rank (default: {Weights().host})"),
        option("--json", action="store_true", help="a JSON object a line"),
        option("--serve", type=int, metavar="PORT", help="serve a page with a box at 127.0.0.1; 0: a free port"),
        option("--replay-port", type=int, default=8080, metavar="PORT",
               help="where scrapy replay shows archived copies (default: 8080)"),
    )  # fmt: skip

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Ask and print, or serve."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.fulltext import Answers, Search, search
        from crawlerproject.stores.operator_files.watched_lists import withdrawn_of

        if not args and opts.serve is None:
            raise OperatorError('Give the words to search for, for example: scrapy search "robots exclusion"')
        if opts.limit < 1:
            raise OperatorError(f"--limit is {opts.limit}; give 1 or more.")
        weights = Weights(opts.page_rank, opts.host_rank)
        for name, weight in zip(("--page-rank", "--host-rank"), weights, strict=True):
            if not 0.0 <= weight < math.inf:
                raise OperatorError(f"{name} is {weight}; give 0 or more.")
        folder = opts.folder or whole_crawl(self.settings)

        def found(words: str, limit: int, host: str, language: str) -> Answers:
            asked = Search(words, limit, host, language, weights)
            return search(folder.search, asked, folder.ranked_pages, withdrawn_of(folder))

        words = " ".join(args)
        if opts.serve is not None:
            found("", 1, "", "")  # without an index there is nothing to serve
            serve(opts.serve, opts.replay_port, found)
            return
        answers = found(words, opts.limit, opts.host, opts.language)
        for hit in answers.hits:
            if opts.json:
                say_json([hit._asdict()], lines=True)
            else:
                more = f"  {hit.more:,} more of --host {hit.host}" if hit.more else None
                say(*filter(None, (hit.title or hit.url, f"  {hit.url}", f"  {hit.snippet}", more)), "")
        if answers.words != words and answers.hits:
            say(f"No page has {words!r}; these answer {answers.words!r}.", error=True)
        if not answers.hits and not opts.json:
            say("Nothing found.")
        self.exitcode = 0 if answers.hits else 1


def serve(port: int, replay_port: int, find: Find) -> None:
    """Say where, and serve until a signal comes. OperatorError: it cannot listen there."""
    from crawlerproject.desk.door import Door, until_signal
    from crawlerproject.desk.search_page import SearchPage

    try:
        door = Door("127.0.0.1", port, "", SearchPage(find, replay_port).answer)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise OperatorError(f"127.0.0.1 port {port}: {why}; choose another with --serve.") from error
    with until_signal(door):
        say(f"{door.home} answers; Ctrl-C ends it.")
        sys.stdout.flush()
        door.serve_forever()
