"""What words come to, for each purpose: the table of precedence."""

import pytest

from crawlerproject.reasons import Reason
from crawlerproject.rules.consent.verdict import (
    PURPOSES,
    Judgement,
    Source,
    Verdict,
    asked_documents,
    judge,
    obeys,
    reservation,
    strictest,
)

ROBOTS, HEADER, PAGE, TDMREP, LICENSE = (
    str(source) for source in (Source.ROBOTS_TXT, Source.HEADER, Source.PAGE, Source.TDMREP, Source.LICENSE)
)
# Words and what they come to, a letter for each of PURPOSES: allowed, reserved, unknown.
SINGLE = [
    (ROBOTS, "train-ai=n", "uuuru"),
    (ROBOTS, "/news train-ai=n", "uuuru"),
    (ROBOTS, "train-ai=y", "uuuau"),
    (ROBOTS, "search=yes, ai-input=no, ai-train=no", "uaurr"),
    (ROBOTS, "bots=n, search=y", "rarrr"),
    (ROBOTS, "all=n, train-ai=y", "rrrar"),
    (ROBOTS, "ai=n", "uuurr"),
    (ROBOTS, "train-ai=perhaps", "uuuru"),
    (ROBOTS, "train-ai=n;exp=1", "uuuru"),
    (ROBOTS, "TRAIN-AI=Y, train-genai=n", "uuuru"),
    (ROBOTS, "colour=n", "uuuuu"),
    (ROBOTS, "license: https://a.example/l.xml", "uuuuu"),
    (ROBOTS, "unreadable: too many words of use", "uurrr"),
    (HEADER, "content-usage: train-ai=n", "uuuru"),
    (HEADER, "content-usage: train-ai=?0", "uuuru"),
    (HEADER, "content-signal: ai-train=yes", "uuuau"),
    (HEADER, "tdm-reservation: 1", "uurrr"),
    (HEADER, "tdm-reservation: 0", "uuaaa"),
    (HEADER, "tdm-reservation: maybe", "uurrr"),
    (HEADER, "tdm-policy: https://a.example/all=n", "uuuuu"),
    (PAGE, "noai", "uuurr"),
    (PAGE, "noml", "uuurr"),
    (PAGE, "tdm-reservation: 1", "uurrr"),
    (TDMREP, "tdm-reservation: 1", "uurrr"),
    (LICENSE, "permits: search; payment: purchase", "rrrrr"),
    (LICENSE, "permits: search", "rarrr"),
    (LICENSE, "prohibits: ai-train", "aaara"),
    (LICENSE, "permits: all; prohibits: ai-all", "aaarr"),
    (LICENSE, "permits: ai-train; prohibits: all", "rrrar"),
    (LICENSE, "permits: ai-train; payment: purchase | permits: ai-train", "rrrar"),
    (LICENSE, "permits: all; user: education", "rrrrr"),
    ("via", "train-ai=n", "uuuuu"),
]
LETTERS = {"a": Verdict.ALLOWED, "r": Verdict.RESERVED, "u": Verdict.UNKNOWN}


@pytest.mark.parametrize(("source", "words", "verdicts"), SINGLE)
def test_one_line(source: str, words: str, verdicts: str) -> None:
    """For each purpose."""
    found = [judge([(source, words)], purpose) for purpose in PURPOSES]

    assert [one.verdict for one in found] == [LETTERS[letter] for letter in verdicts]
    assert all(one.words in ("", words) for one in found)


def test_one_reservation_outweighs_every_permission() -> None:
    """Wherever it stands; the nearest to the page is named."""
    notes = [(ROBOTS, "train-ai=n"), (HEADER, "content-usage: train-ai=y"), (PAGE, "noai")]

    assert judge(notes, "ai-train") == Judgement(Verdict.RESERVED, PAGE, "noai")
    assert judge(notes[:2], "ai-train") == Judgement(Verdict.RESERVED, ROBOTS, "train-ai=n")
    assert judge(notes[1:2], "ai-train") == Judgement(Verdict.ALLOWED, HEADER, "content-usage: train-ai=y")


def test_of_tdmreps_places_the_nearest_counts_alone() -> None:
    """Page, headers, file; what others say is beside that."""
    file, header, page = (TDMREP, "tdm-reservation: 1"), (HEADER, "tdm-reservation: 0"), (PAGE, "tdm-reservation: 1")

    assert judge([file], "research").verdict is Verdict.RESERVED
    assert judge([file, header], "research").verdict is Verdict.ALLOWED
    assert judge([file, header, page], "research") == Judgement(Verdict.RESERVED, *page)
    assert judge([file, header, (ROBOTS, "all=n")], "research") == Judgement(Verdict.RESERVED, ROBOTS, "all=n")


def test_why_a_page_is_not_had() -> None:
    """A reason for each place; a licence that wants money is another."""
    reasons = [
        reservation(Judgement(Verdict.RESERVED, source, "x")) for source in (ROBOTS, HEADER, PAGE, TDMREP, LICENSE)
    ]

    assert [str(reason).removeprefix("reserved-") for reason in reasons] == [
        "robots",
        "header",
        "page",
        "tdmrep",
        "license",
    ]
    assert reservation(Judgement(Verdict.RESERVED, LICENSE, "payment: crawl")) is Reason.PAYMENT_REQUIRED


def test_the_strictest_of_verdicts() -> None:
    """Of an answer and of what a browser made of it."""
    assert strictest("", "allowed") is Verdict.ALLOWED
    assert strictest("reserved", "allowed") is Verdict.RESERVED
    assert strictest("", "") is Verdict.UNKNOWN


@pytest.mark.parametrize("purpose", PURPOSES)
def test_ours_ai_obeys_unless_set_otherwise(purpose: str) -> None:
    """Pages for artificial intelligence are left out where they are reserved; for other purposes that is recorded."""
    assert obeys(purpose, "auto") == purpose.startswith("ai-")
    assert obeys(purpose, "obey")
    assert not obeys(purpose, "record")


@pytest.mark.parametrize("purpose", PURPOSES)
def test_ours_hosts_are_asked_for_what_concerns_the_purpose(purpose: str) -> None:
    """A licence, of which robots.txt speaks; tdmrep.json where the pages are mined; all, or nothing, if told so."""
    mined = purpose in ("research", "ai-train", "ai-input")

    concerned = asked_documents(purpose, "auto")
    assert concerned == asked_documents(purpose, "obey") == {Source.LICENSE, *([Source.TDMREP] if mined else [])}
    assert asked_documents(purpose, "ask") == {Source.LICENSE, Source.TDMREP}
    assert asked_documents(purpose, "record") == frozenset()
