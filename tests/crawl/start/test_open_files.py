"""The limit of open files at a start: raised as far as allowed, and said when that is not enough."""

from __future__ import annotations

import resource

import pytest

from crawlerproject.crawl.start.open_files import raise_limit
from tests.crawl.sessions import settings_of

ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "said"),
    [
        (1024, 524_288, 3456, False),  # a login's: 1,000 requests, 2,000 idle connections, 256 of the store, others
        (1024, ENDLESS, 3456, False),
        (1024, 2048, 2048, False),  # fewer connections are kept
        (1024, 1024, None, True),
        (65_536, 524_288, None, False),
        (ENDLESS, ENDLESS, None, False),
    ],
)
def test_the_soft_limit_follows_the_crawl(
    soft: int, hard: int, raised: int | None, said: bool, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Never lowered, never above the hard one."""
    found: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: found.append(limits[0]))

    raise_limit(settings_of())

    assert found == ([] if raised is None else [raised])
    assert ("FRONTIER_MAX_IN_FLIGHT=1000 may need 1456" in caplog.text) is said
