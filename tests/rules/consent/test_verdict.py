"""Purposes, and which of them obey."""

import pytest

from crawlerproject.rules.consent.verdict import PURPOSES, obeys


@pytest.mark.parametrize("purpose", PURPOSES)
def test_ours_ai_obeys_unless_set_otherwise(purpose: str) -> None:
    """Pages for artificial intelligence are left out where they are reserved; for other purposes that is recorded."""
    assert obeys(purpose, "auto") == purpose.startswith("ai-")
    assert obeys(purpose, "obey")
    assert not obeys(purpose, "record")
