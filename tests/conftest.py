"""What every test shares."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _environment_of_its_own() -> Iterator[None]:
    """Scrapy notes the project in the environment, where programs that a later file starts would find it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
