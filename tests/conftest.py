"""What every test shares."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.web import zygote

TESTS = Path(__file__).parent
# Node's, of Playwright's driver: what one start has compiled, the next thirty read (a fifth of its CPU).
os.environ.setdefault("NODE_COMPILE_CACHE", str(TESTS.parent / "build" / "node"))

# Laws are tried on the same examples every time, so that a failure is the change that was made; `make hunt` looks
# for new ones, and for forty times as many. How long an example takes is the machine's affair.
settings.register_profile(
    "suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.register_profile("hunt", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2_000)
settings.load_profile("suite")


# Files that take longest, by the wall clock: begun first, so that none of them is the tail of the suite.
LONGEST = (
    "crawls/test_faults", "commands/test_fleet_folders", "commands/test_state", "scrapyd/test_scrapyd",
    "batch/test_steps", "recovery/test_rebuild", "crawls/test_coming_back", "crawls/test_render",
    "stores/uploads/test_uploader", "test_package", "fleet/test_shared_addresses", "frontier/test_law",
    "hostile/test_idioms", "commands/test_looking", "hostile/test_terminal", "hostile/rendering/test_widgets",
    "crawls/operator/test_stop", "commands/test_report", "documents/test_document_texts", "crawls/fleet/test_render",
    "crawls/fleet/test_rejoin", "test_addon", "crawls/test_full_disk", "extensions/test_status_server",
    "commands/test_read_only", "crawls/archive/test_other_tools", "crawls/operator/test_backups",
    "hostile/test_stops", "crawls/operator/test_orders", "crawls/operator/test_limits", "crawls/test_pushes",
    "crawls/test_killed_recrawl", "hostile/test_strangers_links", "hostile/rendering/test_webrtc",
    "commands/test_elsewhere", "crawls/test_kills", "commands/test_shared_walks", "batch/test_commoncrawl",
    "crawls/fleet/test_kills", "desk/test_desk", "crawls/fleet/test_fleet", "native/test_lexbor",
    "crawls/fleet/test_redis_forgot", "crawls/fleet/test_lost_worker", "rules/robots/test_matcher",
    "crawls/fleet/test_local", "inspection/test_explanation", "native/test_member", "crawls/test_politeness",
    "hostile/test_slow_neighbours", "crawls/operator/test_resume", "commands/test_shell",
    "hostile/robots/test_files", "rules/test_linear_readers", "crawls/fleet/test_half_ended",
    "rules/test_linear_patterns",
)  # fmt: skip
MOST_LOOKED_AT_TWICE = 3  # files
_CRAWLS = ("crawls/", "hostile/", "commands/", "addon/", "recovery/")
# Shares of the suite: the longest were two fifths of it, by the clock.
_BEGIN = {"longest": 0.0, "crawls": 0.4, "computing": 0.0}
_END = {"longest": 0.4, "crawls": 0.9, "computing": 1.0}


def pytest_configure(config: pytest.Config) -> None:
    """Workers fork what they start off one process: to prepare one of their own takes each 1.7 s of CPU."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        zygote.share()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What is collected stays: to look for garbage in it takes seconds, in each worker and again in its tests."""
    gc.disable()
    _import_share(session.config)
    yield
    gc.freeze()
    gc.enable()
    # At the interpreter's end it is garbage like all else: libraries in C complain of what is left. Not before: pytest
    # looks through all that is not frozen twice as it ends, which takes a second.
    atexit.register(gc.unfreeze)


def _import_share(config: pytest.Config) -> None:
    """Of several workers each begins with other files: what one has compiled, with its asserts, the others read."""
    number, workers = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    if config.args != config.getini("testpaths") or not number:
        return
    # Classes that Scrapy deprecates look for the sources of the whole stack in all modules: early, a second less.
    importlib.import_module("scrapy.core.downloader.contextfactory")
    for path in sorted(TESTS.rglob("test_*.py"))[int(number.removeprefix("gw")) :: int(workers)]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # said when it is collected
            importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_finish(session: pytest.Session) -> None:
    """`make test` tries what has failed once more, alone: seven workers on two cores may stall any one for seconds.

    More than that many files are no chance.
    """
    if os.environ.get("SECOND_LOOK") and len({item.path for item in session.items}) > MOST_LOOKED_AT_TWICE:
        pytest.exit("Too many have failed to be tried once more.", returncode=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Crawls, the longest first, and evenly among them what computes, of which some is left for the end.

    Crawls side by side leave the processor idle, and what computes side by side waits for it.
    """
    kinds: dict[str, list[Path]] = {"longest": [], "crawls": [], "computing": []}
    for path in dict.fromkeys(item.path for item in items):
        name = _name(path)
        kinds["longest" if name in LONGEST else "crawls" if name.startswith(_CRAWLS) else "computing"].append(path)
    kinds["longest"].sort(key=lambda path: LONGEST.index(_name(path)))
    places = {
        path: _BEGIN[kind] + (_END[kind] - _BEGIN[kind]) * (number + 0.5) / len(files)
        for kind, files in kinds.items()
        for number, path in enumerate(files)
    }
    items.sort(key=lambda item: places[item.path])


def _name(path: Path) -> str:
    return path.relative_to(TESTS).with_suffix("").as_posix()


@pytest.fixture(autouse=True, scope="module")
def _environment_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Scrapy notes the project in the environment, where programs that a later file starts would find it.

    Settings and lists of the user who runs the tests are not read.
    """
    before = dict(os.environ)
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))  # crawls of other files are no neighbours
    yield
    os.environ.clear()
    os.environ.update(before)


def _named_loggers() -> list[logging.Logger]:
    return [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]


@pytest.fixture(autouse=True, scope="module")
def _log_of_its_own() -> Iterator[None]:
    """A command that is run in this process gives Scrapy's log a handler and filters, which later files would have."""
    root = logging.getLogger()
    handlers, level = set(root.handlers), root.level
    filters = {logger: list(logger.filters) for logger in _named_loggers()}
    yield
    for logger in _named_loggers():
        logger.filters[:] = filters.get(logger, [])
    for handler in set(root.handlers) - handlers:
        if type(handler).__module__.partition(".")[0] != "_pytest":  # its own come and go with every test
            root.removeHandler(handler)
    root.setLevel(level)
