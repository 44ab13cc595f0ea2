"""The refetch table, line by line; what makes a host's validators believed; what is remembered of visits."""

from email.utils import formatdate
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.reasons import Reason
from crawlerproject.rules.revisits.change_rate import RATES, Belief, Numbers, unpacked
from crawlerproject.rules.revisits.history import (
    DAY_SECONDS,
    FEED,
    MAX_FRESH_SECONDS,
    NEW_HOST,
    SITEMAP,
    Answer,
    Change,
    Found,
    History,
    HostHistory,
    Known,
    Trust,
    change,
    fresh_until,
    http_date,
    is_due,
    learned,
    next_visit,
    validators,
    wait_seconds,
)

NOW = 1_800_000_000.0
DIGEST, OTHER = b"a" * 20, b"b" * 20
OLD = NOW - 5 * DAY_SECONDS
http_date_text = partial(formatdate, usegmt=True)
TAGGED = Known('"v1"', http_date_text(OLD - 100), DIGEST)


@pytest.mark.parametrize(
    ("visited_at", "fresh_until", "due"),
    [
        pytest.param(OLD, NOW + 1, False, id="P: Expires in the future: no"),
        pytest.param(NOW - 3600, 0.0, False, id="P: visited recently: no"),
        pytest.param(OLD, NOW, True, id="P: else ask"),
        pytest.param(NOW - 2 * DAY_SECONDS, 0.0, True, id="recently ends"),
    ],
)
def test_whether_a_known_page_is_asked_for(visited_at: float, fresh_until: float, due: bool) -> None:
    """The first two lines of the table."""
    assert is_due(visited_at, fresh_until, NOW, 2 * DAY_SECONDS) is due


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(Known("", "", DIGEST), id="no validator"),
        pytest.param(Known('"v1"', "", b""), id="nothing archived to stand for"),
        pytest.param(Known("", "last summer", DIGEST), id="a date that is none"),
    ],
)
def test_a_plain_get(known: Known) -> None:
    """The last line of the table: nothing that a 304 could be believed for."""
    assert validators(known, NEW_HOST) == {}


@pytest.mark.parametrize(
    ("status", "digest", "expected"),
    [
        pytest.param(304, b"", Change.UNCHANGED, id="P: conditional request answered 304: no"),
        pytest.param(200, DIGEST, Change.UNCHANGED, id="the same payload"),
        pytest.param(200, OTHER, Change.CHANGED, id="P: else yes"),
        pytest.param(410, OTHER, Change.CHANGED, id="gone is a change"),
        pytest.param(500, OTHER, Change.UNKNOWN, id="an error says nothing"),
        pytest.param(302, OTHER, Change.UNKNOWN, id="a redirect is another page's matter"),
    ],
)
def test_what_the_answer_says(status: int, digest: bytes, expected: Change) -> None:
    """304 and the same payload mean unchanged; headers do not decide."""
    assert change(TAGGED, Answer(status, digest=digest)) is expected


def test_last_modified_before_the_visit_decides_nothing() -> None:
    """P: Last-Modified older than the last visit; the payload decides."""
    assert change(TAGGED, Answer(200, "", http_date_text(OLD - 10), OTHER)) is Change.CHANGED


def test_both_validators_go_into_one_request() -> None:
    """If-None-Match and If-Modified-Since as received, nothing made up."""
    assert validators(TAGGED, NEW_HOST) == {
        "If-None-Match": b'"v1"',
        "If-Modified-Since": http_date_text(OLD - 100).encode(),
    }
    assert validators(TAGGED._replace(etag=""), NEW_HOST) == {"If-Modified-Since": http_date_text(OLD - 100).encode()}


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        (b'W/"a-1"', True),
        (b"an unquoted one", True),
        (b'"\xe9t\xe9"', True),  # RFC 9110 8.8.3: obs-text
        (b'"a*b"', True),
        (b'"' + b"a" * 254 + b'"', True),
        (b'"' + b"a" * 255 + b'"', False),
        (b'"a\x01b"', False),
        (b'"a\tb"', False),
        (b'"\x80"', False),
        (b'"\x7f"', False),
        (b"*", False),
        (b'*"a"', False),
        (b'"a", *', False),
        (b"W/*", False),
    ],
)
def test_ours_only_what_is_printable_and_short_is_sent_back(received: bytes, sent: bool) -> None:
    """In the bytes that came; ``*`` would be true of every version."""
    known = Known(received.decode("latin-1"), "", DIGEST)
    assert validators(known, NEW_HOST) == ({"If-None-Match": received} if sent else {})


@given(st.binary(max_size=300))
def test_a_validator_is_sent_as_it_came_or_not_at_all(received: bytes) -> None:
    """Whatever a server sends: nothing that is long, controls, or means something else."""
    text = received.decode("latin-1")
    for value in validators(Known(text, text, DIGEST), NEW_HOST).values():
        assert value == received
        assert len(value) <= 256
        assert value.strip() != b"*"
        assert not any(byte < 0x20 or 0x7F <= byte < 0xA0 for byte in value)


def test_a_restless_etag_is_no_longer_sent() -> None:
    """An ETag that changes while the body does not would only keep If-Modified-Since from being read."""
    trust = NEW_HOST
    for number in range(3):
        trust = learned(trust, TAGGED, Answer(200, f'"other{number}"', TAGGED.last_modified, DIGEST))

    assert not trust.believes_etag
    assert "If-None-Match" not in validators(TAGGED, trust)
    assert "If-Modified-Since" in validators(TAGGED, trust)


def test_a_304_that_lies_ends_conditional_requests_and_honesty_earns_them_back() -> None:
    """Validators that stay while the body changes: full GETs, until enough of them were honest."""
    trust = NEW_HOST
    for _ in range(2):
        trust = learned(trust, TAGGED, Answer(200, TAGGED.etag, TAGGED.last_modified, OTHER))
    assert not trust.believes_304
    assert validators(TAGGED, trust) == {}

    for number in range(20):
        trust = learned(trust, TAGGED, Answer(200, f'"v{number + 2}"', TAGGED.last_modified, OTHER))
    assert trust.believes_304


def test_a_304_teaches_nothing() -> None:
    """It cannot be told from a lie: only full answers count."""
    assert learned(NEW_HOST, TAGGED, Answer(304, '"v1"', "", b"")) == NEW_HOST


def test_a_weak_etag_may_stay() -> None:
    """RFC 9110 8.8.1: a weak validator need not change with every byte."""
    weak = TAGGED._replace(etag='W/"v1"')

    assert learned(NEW_HOST, weak, Answer(200, 'W/"v1"', "", OTHER)).lies == 0


def test_one_slip_in_a_hundred_is_forgiven_and_notes_fade() -> None:
    """Trust is a share, and old notes weigh less and less."""
    trust = Trust(honest=49)
    trust = learned(trust, TAGGED, Answer(200, TAGGED.etag, TAGGED.last_modified, OTHER))
    trust = learned(trust, TAGGED, Answer(200, '"v2"', "", OTHER))

    assert trust.believes_304
    assert trust.honest + trust.lies < 30


DATE = http_date_text(NOW)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, 0, id="nothing said"),
        pytest.param({"cache-control": "public, max-age=600"}, 600, id="max-age"),
        pytest.param({"cache-control": "Max-Age=600", "age": "100"}, 500, id="Age is taken off (RFC 9111 4.2.3)"),
        pytest.param({"cache-control": "max-age=600, no-cache"}, 0, id="no-cache"),
        pytest.param({"cache-control": "no-store", "expires": http_date_text(NOW + 99)}, 0, id="no-store"),
        pytest.param({"cache-control": "max-age=60", "expires": http_date_text(NOW + 99)}, 60, id="max-age wins"),
        pytest.param({"expires": http_date_text(NOW + 99)}, 99, id="Expires"),
        pytest.param({"expires": http_date_text(NOW + 3699), "date": http_date_text(NOW + 3600)}, 99, id="their clock"),
        pytest.param({"expires": "0"}, 0, id="Expires: 0 (RFC 9111 5.3)"),
        pytest.param({"expires": "tomorrow", "date": DATE}, 0, id="a date that is none"),
        pytest.param({"cache-control": "max-age=-1"}, 0, id="a negative age"),
        pytest.param({"cache-control": "max-age=99999999999999"}, MAX_FRESH_SECONDS, id="for ever is the longest tier"),
        pytest.param({"cache-control": 'max-age="60"'}, 60, id="quoted"),
        pytest.param({"expires": http_date_text(NOW - 99), "date": DATE}, 0, id="already over"),
    ],
)
def test_freshness_by_the_servers_word(headers: dict[str, str], seconds: float) -> None:
    """RFC 9111 4.2: explicit freshness only."""
    assert fresh_until(headers, NOW) == NOW + seconds


def test_http_dates_in_three_forms_and_none() -> None:
    """RFC 9110 5.6.7: the preferred one, RFC 850's, asctime's; anything else is no date."""
    expected = 784111777.0

    assert http_date("Sun, 06 Nov 1994 08:49:37 GMT") == expected
    assert http_date("Sunday, 06-Nov-94 08:49:37 GMT") == expected
    assert http_date("Sun Nov  6 08:49:37 1994") == expected
    for text in (
        "",
        "0",
        "-1",
        "yesterday",
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "\x00" * 30,
    ):
        assert http_date(text) is None


# Refused for good, of a row that is no page, or not an end of a page at all.
NEVER = {
    Reason.RENDERED, Reason.SUBSCRIBED, Reason.INVALID_URL, Reason.SCHEME, Reason.DEPTH, Reason.URL_LENGTH,
    Reason.BUDGET, Reason.TRAP, Reason.EXTERNAL_BUDGET, Reason.EXTERNAL_DOOR, Reason.SITEMAP_BUDGET,
    Reason.REQUISITE_BUDGET, Reason.ROBOTS_REDIRECT, Reason.NOFOLLOW, Reason.RENDER_PACE, Reason.HOST_PARKED,
    Reason.FOREIGN_ENTRY, Reason.BAD_PORT, Reason.TOO_MANY_PORTS, Reason.TOO_MANY_HOSTS, Reason.TOO_MANY_NAMES,
    Reason.POISON, Reason.HUB_UNPROVEN, Reason.PAUSED,
    Reason.HOST_LIMIT, Reason.CRAWL_LIMIT, Reason.RENDER_TIMEOUT, Reason.RENDER_FAILED, Reason.LOST,
}  # fmt: skip


def days(reason: Reason, status: int = 0, last_days: float = 0.0) -> float | None:
    """The wait in days."""
    seconds = wait_seconds(reason, status, last_days * DAY_SECONDS)
    return None if seconds is None else seconds / DAY_SECONDS


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_its_place(reason: Reason) -> None:
    """Either it is looked at again or it is named here."""
    assert (days(reason) is None) == (reason in NEVER)


@pytest.mark.parametrize(
    ("reason", "status", "first"),
    [
        (Reason.HTTP_ERROR, 500, 2.0),
        (Reason.HTTP_ERROR, 404, 14.0),
        (Reason.REDIRECT, 301, 14.0),
        (Reason.RATE_LIMITED, 503, 2.0),
        (Reason.DISCONNECTED, 0, 2.0),
        (Reason.DNS_NOT_FOUND, 0, 14.0),
        (Reason.ROBOTS, 0, 2.0),
        (Reason.INTERNAL_ERROR, 0, 14.0),
    ],
)
def test_what_passes_is_looked_at_sooner(reason: Reason, status: int, first: float) -> None:
    """Two days or two weeks, then twice as long each time, at most thirty days."""
    assert [days(reason, status, last) for last in (0.0, first, 20.0, 30.0)] == [first, 2 * first, 30.0, 30.0]


def test_another_end_shortens_no_wait() -> None:
    """A host that was missing and now breaks off is not asked more often for it."""
    assert days(Reason.DISCONNECTED, 0, 14.0) == 28.0
    assert days(Reason.DNS_NOT_FOUND, 0, 2.0) == 14.0


ONCE = History(visits=1, seen_at=NOW)


def rate(belief: Belief) -> Numbers:
    """Changes a day to be expected."""
    expected: Numbers = np.exp(belief @ np.log(RATES))
    return expected


def test_histories_survive_packing() -> None:
    """Every field; a sitemap's origin and a belief together."""
    full = History(SITEMAP, 2, 7, NOW, NOW + 1, NOW + 2, 1.5, 1.0, 2**63, bytes(range(1, 13)), "http://ü.test")
    host = HostHistory(Trust(1, 2, 3, 4), 5, 6, 7, tuple(float(number) for number in range(12)))

    assert History.unpack(full.pack()) == full
    assert History.unpack(ONCE.pack()) == ONCE
    assert HostHistory.unpack(host.pack()) == host
    loosened = host._replace(loosened_at=NOW)
    assert HostHistory.unpack(loosened.pack()) == loosened
    assert loosened.pack().startswith(host.pack())  # what has no such moment is as earlier versions wrote it


@pytest.mark.parametrize("kept", [b"", b"\x00", b"\xff" * 80])
def test_what_cannot_be_read_is_as_if_nothing_were_known(kept: bytes) -> None:
    """Nothing, something torn, another version's."""
    assert History.unpack(kept) == History()
    assert HostHistory.unpack(kept) == HostHistory()


def test_changes_raise_the_page_and_its_host() -> None:
    """A page that changed at each visit is believed to be quick, and so is the next new page of its host."""
    history, host = ONCE, HostHistory()
    for visit in range(1, 6):
        history, host = next_visit(history, host, Found(Change.CHANGED, NOW + visit * DAY_SECONDS, 0, 0))
    quiet, calm = next_visit(ONCE, HostHistory(), Found(Change.UNCHANGED, NOW + 30 * DAY_SECONDS, 0, 0))

    assert history.visits == 6
    assert rate(unpacked(history.belief)) > 10 * rate(unpacked(quiet.belief))
    assert rate(host.prior()) > rate(calm.prior())
    assert (host.pages, calm.pages) == (1, 1)


def test_an_error_teaches_nothing_but_ends_the_waiting() -> None:
    """The page may be chosen again; its content is as old as before."""
    waiting = ONCE._replace(queued_at=NOW + 5, kind=FEED)

    later, host = next_visit(waiting, HostHistory(), Found(Change.UNKNOWN, NOW + 9, 0, 3))

    assert later == waiting._replace(queued_at=0.0)
    assert host == HostHistory()


def test_dates_of_lists_are_believed_as_long_as_half_are_right() -> None:
    """Announcements that came to nothing count against the host."""
    announced = ONCE._replace(announced=1.0)
    host = HostHistory()
    for _ in range(3):
        _, host = next_visit(announced, host, Found(Change.UNCHANGED, NOW + DAY_SECONDS, 0, 0))
    assert not host.believes_lastmod

    for _ in range(2):
        _, host = next_visit(announced, host, Found(Change.CHANGED, NOW + DAY_SECONDS, 0, 0))
    assert host.believes_lastmod
