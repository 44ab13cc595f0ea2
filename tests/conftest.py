"""What every test shares."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

# Laws are tried on the same examples every time, so that a failure is the change that was made; `make hunt` looks
# for new ones. How long an example takes is the machine's affair.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("hunt", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2_000)
settings.load_profile("suite")


# Files that take longest, by the wall clock: begun first, so that none of them is the tail of the suite.
LONGEST = (
    "scrapyd/test_scrapyd", "hostile/test_idioms", "crawls/test_coming_back", "crawls/test_render",
    "commands/test_state", "crawls/test_full_disk", "extensions/test_status_server", "crawls/test_kills",
    "crawls/operator/test_limits", "crawls/operator/test_orders", "crawls/fleet/test_kills", "commands/test_looking",
    "crawls/test_small_web", "crawls/operator/test_stop", "commands/test_shell", "crawls/fleet/test_local",
    "test_addon", "crawls/archive/test_other_tools", "crawls/fleet/test_fleet", "commands/test_report",
    "test_package", "rules/test_linear_patterns", "batch/test_steps",
)  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays: to look for garbage in it takes seconds, in each worker and again in its tests."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """At the interpreter's end it is garbage like all else: libraries in C complain of what is left."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, then other crawls, then what takes milliseconds."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    path = item.path.relative_to(TESTS).with_suffix("").as_posix()
    if path in LONGEST:
        return LONGEST.index(path)
    return len(LONGEST) + (not path.startswith(("crawls/", "hostile/", "commands/", "addon/", "recovery/")))


@pytest.fixture(autouse=True, scope="module")
def _environment_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Scrapy notes the project in the environment, where programs that a later file starts would find it.

    Settings and lists of the user who runs the tests are not read.
    """
    before = dict(os.environ)
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True, scope="module")
def _log_of_its_own() -> Iterator[None]:
    """A command that is run in this process gives Scrapy's log a handler and filters, which later files would have."""
    root = logging.getLogger()
    handlers, level = set(root.handlers), root.level
    yield
    for handler in set(root.handlers) - handlers:
        if type(handler).__module__.partition(".")[0] != "_pytest":  # its own come and go with every test
            root.removeHandler(handler)
    root.setLevel(level)
