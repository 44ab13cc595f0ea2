"""Checks before the first request: each mistake of the operator's ends the start with one sentence that mends it."""

from __future__ import annotations

import errno
import logging
import os
import re
import resource
from collections.abc import Iterable
from pathlib import Path

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlerproject.config.chromium import find_chromium
from crawlerproject.config.crawl_file import refuse_bad_user_settings, refuse_unknown
from crawlerproject.config.crawl_kind import (
    LOCAL,
    answer_seconds,
    local,
    one_of_several,
    shared,
    whole_crawl,
    worker_name,
)
from crawlerproject.config.settings_table import SETTINGS
from crawlerproject.config.values import identity, list_of, preset_of, rest_limits_of
from crawlerproject.crawl.run import has_counted_none
from crawlerproject.crawl.start.setting_limits import check_scrapys, check_signing, check_values
from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.fetch.pool import MAX_IDLE_CONNECTIONS
from crawlerproject.fetch.tls import allowed_hosts
from crawlerproject.hooks.hook_events import hook_in
from crawlerproject.reasons import Reason
from crawlerproject.rules.printable import without_passwords
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.rules.url.scope import SCOPES, BadOption, Seeds, seeds_of
from crawlerproject.runtime.unix_sockets import connected
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import is_alone, read_plan, refuse_part
from crawlerproject.stores.operator_files.watched_lists import lines_of
from crawlerproject.stores.rocks.frontier_folder import open_frontier
from crawlerproject.stores.rocks.rocks_store import FrontierView
from crawlerproject.stores.rocks.rocks_tables import OPEN_FILES

logger = logging.getLogger(__name__)

# Names that become keys in Redis, where braces mean something, and folders.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")

_CMDLINE = SETTINGS_PRIORITIES["cmdline"]
MODES = ("crawl", "recrawl")

# The archive, logs, libraries, pipes to other processes, questions to DNS servers: some 60 seen (ours).
_OTHERS = 200


def seeds_with_options(seeds: str, scope: str, *, warn: bool = True) -> Seeds:
    """The seeds of ``-a seeds=``: a file (one URL a line, its options behind it) or URLs separated by commas.

    Lines that are no URLs are skipped, and reported with their number unless ``warn`` is off; nothing usable raises
    OperatorError.
    """
    if scope not in SCOPES:
        raise OperatorError(f"The scope {scope!r} is unknown; use one of {', '.join(SCOPES)}.")
    if not seeds.strip():
        raise OperatorError("There are no seeds; give a file or URLs separated by commas with -a seeds=….")
    source, lines = _seed_lines(seeds)
    try:
        read = seeds_of(lines)
    except BadOption as error:
        raise OperatorError(f"{source}, {error}.") from None
    addresses, problems, _ = read
    for problem in problems if warn else ():
        logger.warning("%s, line %d: %s: %r is skipped", source, problem.line_number, problem.reason, problem.text)
    if not addresses:
        detail = "" if not problems else f": line {problems[0].line_number} is {problems[0].reason}"
        raise OperatorError(f"No usable seed in {source}{detail}; give at least one http or https URL.")
    return read


def absolute_seeds(seeds: str) -> str:
    """``-a seeds=`` as a later start can read it from another folder: a file by its absolute path."""
    file = _seeds_file(seeds)
    return str(file.absolute()) if file is not None else seeds


def mode_and_budget(mode: str, budget: str) -> tuple[bool, int | None]:
    """``-a mode=`` and ``-a budget=``: whether known pages are visited again, and how many at most (None: all due)."""
    if mode not in MODES:
        raise OperatorError(f"The mode {mode!r} is unknown; use one of {', '.join(MODES)}.")
    if not budget:
        return mode == "recrawl", None
    if mode != "recrawl":
        raise OperatorError("A budget is for visiting known pages again; give it with -a mode=recrawl.")
    if not (budget.isascii() and budget.isdigit() and int(budget) > 0):
        raise OperatorError(f"The budget {budget!r} is not a number of pages; give one of 1 or more.")
    return True, int(budget)


def check_known(settings: BaseSettings) -> None:
    """Refuse to come back to a crawl that there never was. Raises OperatorError."""
    if shared(settings):
        from crawlerproject.stores.redis.journal_view import crawl_in_redis  # for a fleet over Redis only, as below

        with crawl_in_redis(str(settings["STATE_URL"]), str(settings["FLEET_CRAWL"])):
            return
    folder = whole_crawl(settings)
    plan = read_plan(folder)
    if not any(place.has_frontier() for place in ([folder] if plan is None else plan.folders(folder))):
        raise OperatorError(f"There is no crawl in {folder} to come back to; crawl first, or set CRAWL_DIR to one.")


def has_begun(folder: CrawlDir) -> bool:
    """Whether the crawl was ever started, alone or as several workers; else its crawl.toml was written by hand."""
    return folder.is_begun() or bool(folder.started_below())


def has_no_page(settings: BaseSettings) -> bool:
    """Whether no start of this crawl, of one process, had an answer to anything but robots.txt. OperatorError."""
    folder = whole_crawl(settings)
    if one_of_several(settings) or not (is_alone(folder) and folder.has_frontier()):
        return False
    with FrontierView(folder.frontier) as store:
        return has_counted_none(store)


def _seeds_file(seeds: str) -> Path | None:
    """The file that they name; None when there is none. A long list of URLs is no name at all. OSError."""
    try:
        return Path(seeds) if Path(seeds).is_file() else None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise


def _seed_lines(seeds: str) -> tuple[str, Iterable[str]]:
    try:
        if (file := _seeds_file(seeds)) is not None:
            return seeds, lines_of(file)
    except OSError as error:
        raise OperatorError(
            f"The seeds file {seeds} cannot be read ({error.strerror}); check its permissions."
        ) from error
    if "://" in seeds or "," in seeds:
        return "the seeds", [part.strip() for part in seeds.split(",")]
    if os.path.isdir(seeds):  # which is no error for a name that is too long
        raise OperatorError(f"The seeds {seeds} are a folder; give a file with one URL a line.")
    if "/" in seeds or seeds.endswith((".txt", ".csv", ".lst", ".seeds")) or "." not in seeds:
        raise OperatorError(f"The seeds file {seeds} does not exist; give a file with one URL a line, or URLs.")
    return "the seeds", [seeds]


def check(settings: BaseSettings, folder: CrawlDir) -> None:
    """Refuse a crawl that cannot go well. Raises OperatorError."""
    check_settings(settings)
    if not one_of_several(settings):
        refuse_part(folder)
    folder.make(within=folder.parent if one_of_several(settings) else None)
    lock = take_lock(folder)
    try:
        if local(settings) or (
            not shared(settings) and is_alone(folder)
        ):  # else they are opened when they are made one
            open_frontier(folder).close()
    finally:
        os.close(lock)


def check_supervised(settings: BaseSettings) -> None:
    """Refuse a local fleet's worker that was started by hand: no supervisor is there. Raises OperatorError."""
    if not local(settings):
        return
    folder = whole_crawl(settings)
    try:
        connected(folder.supervisor_socket).close()
    except OSError as error:
        raise OperatorError(
            f"STATE_URL={LOCAL} is for workers that scrapy fleet starts, and none is at work in {folder}; run "
            "scrapy fleet -a seeds=… --workers N, or scrapy crawl without that setting."
        ) from error


def check_settings(settings: BaseSettings) -> None:
    """The part of ``check`` that needs no folder. Every crawl runs it, however it was started."""
    refuse_bad_user_settings()
    refuse_unknown((name for name in settings if settings.getpriority(name) == _CMDLINE), "The command line")
    check_scrapys(settings)
    check_values(settings)
    preset_of(settings)
    rest_limits_of(settings)
    who = identity(settings)
    try:
        AddressRules(list_of(settings, "FETCH_ALLOW_NETWORKS"))
    except ValueError as error:
        raise OperatorError(f"FETCH_ALLOW_NETWORKS: {error}; use CIDR, for example 127.0.0.0/8.") from error
    allowed_hosts(list_of(settings, "TLS_ALLOW_HOSTS"))
    # No public crawl: the operator's own names at own addresses.
    own_names = settings["FETCH_HOSTS_FILE"] != SETTINGS["FETCH_HOSTS_FILE"].default
    if not (who.reachable or (own_names and list_of(settings, "FETCH_ALLOW_NETWORKS"))):
        raise OperatorError(
            "A crawl of public addresses needs a way to reach you: set CRAWLER_INFO_URL or CRAWLER_CONTACT "
            "(-s CRAWLER_CONTACT=you@example.org)."
        )
    if shared(settings):
        _check_fleet(settings)
    elif local(settings):
        if not _NAME.fullmatch(str(settings["FLEET_WORKER"])):
            raise OperatorError(
                f"STATE_URL={LOCAL} is for workers that scrapy fleet starts, and FLEET_WORKER is "
                f"{settings['FLEET_WORKER']!r}; run scrapy fleet -a seeds=… --workers N."
            )
    elif not str(settings["STATE_URL"]).startswith("rocksdb:"):
        raise OperatorError(f"STATE_URL is {settings['STATE_URL']!r}; use rocksdb: or redis://host:6379/0.")
    check_signing(settings)
    find_chromium(settings["RENDER_BROWSER"])
    _check_services(settings)


def _check_services(settings: BaseSettings) -> None:
    """What the crawl calls, and where it is called: hooks, the place of its archive, hubs."""
    try:
        hook_in(settings)
    except ValueError as error:
        raise OperatorError(str(error)) from None
    if proxies := list_of(settings, "RENDER_PROXIES"):
        from crawlerproject.fetch.download_handler import parse_proxy  # the crawl's, which imports it later

        for proxy in proxies:
            try:
                if ":" not in proxy:
                    raise FetchError(Reason.PROXY_FAILED, "not a proxy address")
                parse_proxy(proxy)
            except FetchError as error:
                raise OperatorError(
                    f"RENDER_PROXIES has {without_passwords(proxy)!r} ({error.detail}); use http://host:port."
                ) from None
    if settings["ARCHIVE_URL"]:
        from crawlerproject.stores.uploads.upload_target import checked_url  # no other crawl imports it

        checked_url(str(settings["ARCHIVE_URL"]))
    public = str(settings["WEBSUB_PUBLIC_URL"])
    if public and not public.startswith(("http://", "https://")):
        raise OperatorError(f"WEBSUB_PUBLIC_URL is {public!r}; use the http or https URL at which hubs reach you.")


def _check_fleet(settings: BaseSettings) -> None:
    """Redis is there and fit, names can be keys, and a request fits into a lease."""
    from crawlerproject.stores.redis.connection import RedisLink

    lease, answer = settings.getfloat("FLEET_LEASE_SECONDS"), answer_seconds(settings)
    if lease < 1.5 * answer:  # a third of a lease may be over before it is renewed
        raise OperatorError(
            f"FLEET_LEASE_SECONDS is {lease:g}; it must be at least half as long again as FETCH_TIMEOUT_SECONDS and "
            f"RENDER_TIMEOUT_SECONDS (the longer is {answer:g}), since no request may outlive its lease."
        )
    for name, value in (("FLEET_CRAWL", settings["FLEET_CRAWL"]), ("FLEET_WORKER", worker_name(settings))):
        if not _NAME.fullmatch(str(value)):
            raise OperatorError(f"{name} is {value!r}; use letters, digits, dots, dashes and underscores.")
    RedisLink(settings["STATE_URL"]).close()


def raise_limit(settings: BaseSettings) -> None:
    """Raise this process's soft limit of open files to what its requests need; warn when the hard one is lower.

    A login has 1,024 of 500,000 allowed files for the sake of programs that use select(2).
    """
    in_flight = settings.getint("FRONTIER_MAX_IN_FLIGHT")
    least = in_flight + OPEN_FILES + _OTHERS
    wanted = least + MAX_IDLE_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if resource.RLIM_INFINITY != soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < least:
        logger.warning(
            "This process may open %d files, and FRONTIER_MAX_IN_FLIGHT=%d may need %d: raise the limit (ulimit -Hn, "
            "LimitNOFILE of the unit) or lower the setting; requests for which there is no file wait.",
            most, in_flight, least,
        )  # fmt: skip
