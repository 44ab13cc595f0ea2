"""What a hub may tell us (https://www.w3.org/TR/websub/)."""

import hashlib
import hmac

import pytest

from crawlerproject.rules.feeds.websub import (
    MAX_LEASE_SECONDS,
    HubReply,
    Subscription,
    hub_and_topic,
    pushed,
    signed,
    verified,
)

WANTED = Subscription("http://a.test/feed", "http://hub.test/", "token", "secret", asked_at=100.0)
QUESTION = {"hub.mode": "subscribe", "hub.topic": WANTED.topic, "hub.challenge": "c", "hub.lease_seconds": "600"}


@pytest.mark.parametrize(
    ("header", "hubs", "own", "found"),
    [
        ([], [], "", None),
        ([], ["/hub", "http://second.test/"], "", ("http://a.org/hub", "http://a.org/feed")),
        (['<http://first.test/>; rel="hub"'], ["http://second.test/"], "http://www.a.org/f",
         ("http://first.test/", "http://www.a.org/f")),
        ([], ["http://hub.org/"], "http://b.org/feed", None),
        ([], ["javascript:alert(1)"], "", None),
    ],
)  # fmt: skip
def test_hub_and_topic(header: list[str], hubs: list[str], own: str, found: tuple[str, str] | None) -> None:
    """Headers before the document, the first hub, and no topic of another domain (ours)."""
    assert hub_and_topic("http://a.org/feed", header, hubs, own) == found


def test_an_intent_of_ours_is_confirmed() -> None:
    """5.3.1: the challenge comes back, the lease begins; a long one is cut (ours)."""
    new, answer = verified(WANTED, QUESTION, 1000.0)
    longest, _ = verified(WANTED, QUESTION | {"hub.lease_seconds": "99999999999"}, 1000.0)

    assert answer == HubReply(200, "c")
    assert new is not None
    assert (new.live(1599.0), new.live(1600.0), new.due_at()) == (True, False, 1600.0 - 60.0)
    assert longest is not None
    assert longest.lease_until == 1000.0 + MAX_LEASE_SECONDS


def test_a_denial_ends_it() -> None:
    """5.2: the hub may say no at any time."""
    live = WANTED._replace(lease_until=9000.0)
    new, answer = verified(live, {"hub.mode": "denied", "hub.topic": WANTED.topic, "hub.reason": "busy"}, 1000.0)

    assert answer.status == 200
    assert new is not None
    assert (new.live(1000.0), new.denied) == (False, "busy")


@pytest.mark.parametrize("change", [{"hub.topic": "x"}, {"hub.mode": "unsubscribe"}, {"hub.lease_seconds": "٣"},
                                    {"hub.lease_seconds": "0"}, {"hub.challenge": ""}])  # fmt: skip
def test_what_was_not_asked_for_changes_nothing(change: dict[str, str]) -> None:
    """5.3.1: 404, and the subscription is as it was."""
    new, answer = verified(WANTED, QUESTION | change, 1000.0)

    assert new == WANTED
    assert answer.status == 404
    assert answer.refused


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures(method: str) -> None:
    """7.1: HMAC of the body under the secret, in hexadecimal; of nothing else, by no other method."""
    right = hmac.new(b"secret", b"body", method).hexdigest()

    assert signed(b"body", f"{method}={right}", "secret")
    assert not signed(b"body ", f"{method}={right}", "secret")
    assert not signed(b"body", f"{method}={right}", "Secret")
    assert not signed(b"body", f"{method}={right[:-1]}", "secret")
    assert not signed(b"body", right, "secret")
    md5 = hmac.new(b"secret", b"body", hashlib.md5).hexdigest()
    assert not signed(b"body", f"md5={md5}", "secret")
    assert not signed(b"body", "sha256=\udcff", "secret")


def test_a_push_needs_a_lease() -> None:
    """Before the intent is verified, and after the lease, nothing is taken in."""
    signature = "sha256=" + hmac.new(b"secret", b"body", "sha256").hexdigest()

    assert pushed(None, b"body", signature, [], 500.0).status == 404
    assert pushed(WANTED, b"body", signature, [], 500.0).status == 410
    live = WANTED._replace(lease_until=600.0)
    assert pushed(live, b"body", signature, [], 500.0) == HubReply(202)
    assert pushed(live, b"body", signature, [], 600.0).status == 410
