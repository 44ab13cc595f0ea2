"""What every test shares."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Laws are tried on the same examples every time, so that a failure is the change that was made; `make hunt` looks
# for new ones. How long an example takes is the machine's affair.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("hunt", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2_000)
settings.load_profile("suite")


@pytest.fixture(autouse=True, scope="module")
def _environment_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Scrapy notes the project in the environment, where programs that a later file starts would find it.

    What whoever runs the tests has of settings and lists of their own is not met.
    """
    before = dict(os.environ)
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    yield
    os.environ.clear()
    os.environ.update(before)
