"""Pages that would stall or end a parser are recognised in linear time, ordinary ones are not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.rules.page.body import (
    _EXCESS,
    LONG_TAG_BYTES,
    MAX_ATTRIBUTES,
    Weight,
    _has_crowded_tag,
    is_bomb,
    weight,
)
from crawlerproject.rules.page.page import read_light_html
from tests.spending import spent

_ATTRIBUTES = b" ".join(b"a%d" % n for n in range(20_000))
_HIDDEN = b" ".join(b'a%d="<b>"' % n for n in range(20_000))
_FORMATTING = b"".join(b"<b id=%d>" % n for n in range(1_500))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<p " + _ATTRIBUTES + b">", id="attributes"),
        pytest.param(b"<p " + _HIDDEN + b">", id="attributes-with-quoted-brackets"),
        pytest.param(b"<p = ==" + _HIDDEN + b">", id="attributes-after-odd-ones"),
        pytest.param(b"<div>" * 20_000, id="nesting"),
        pytest.param(b"<div>" * 20_000 + b"</div>" * 20_000, id="nesting-closed"),
        pytest.param(b"<div></x>" * 20_000, id="nesting-behind-stray-end-tags"),
        pytest.param(b"<DIV>" * 3_900 + b"<p>x</p>" * 100_000, id="deep-and-long"),
        pytest.param(b"<p>" + _FORMATTING + b"</p>" + b"<p>x" * 1_500, id="formatting"),
    ],
)
def test_bombs(body: bytes) -> None:
    """Each would cost from half a second to minutes."""
    assert is_bomb(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<p>x" * 300_000, id="unclosed-paragraphs"),
        pytest.param(b"<tr><td>x<td>y" * 100_000, id="unclosed-cells"),
        pytest.param(b"<div><i class=x></i><b>y</b><br></div>" * 20_000, id="long-flat"),
        pytest.param(b'<img src="data:' + b"A" * 1_000_000 + b'">', id="data-address"),
        pytest.param(b"<script>" + b"a b c " * 100_000 + b"</script>", id="long-script"),
    ],
)
def test_ordinary_pages(body: bytes) -> None:
    """Large, flat or long-valued is no bomb."""
    assert not is_bomb(body)


@pytest.mark.parametrize(
    "unit", [b"<", b"<a ", b'<a b="', b"<a b='x\"", b"<a\"'", b"<p = ", b"<a/", b"</", b'<a>=">=">=">', b'=">']
)
def test_the_check_is_no_bomb_itself(unit: bytes) -> None:
    """2 MiB of anything takes well under two seconds of CPU: no quantifier backtracks."""
    assert spent(lambda: is_bomb(unit * (2_097_152 // len(unit)))) < 2.0


@given(st.lists(st.sampled_from([b"<p ", b">", b"'", b'"', b"=", b"<b>", b" ", b"x" * 700, b"y" * 2_900]), max_size=24))
def test_no_tag_of_many_attributes_hides(pieces: list[bytes]) -> None:
    """Whatever quotes and brackets stand around it: what the exact count finds, the steps find."""
    crowd = b" ".join(b"a%d" % number for number in range(MAX_ATTRIBUTES + 50))
    for place in range(len(pieces) + 1):
        body = b"".join((*pieces[:place], crowd, *pieces[place:])) + b"z" * LONG_TAG_BYTES
        if any(_EXCESS.findall(body)):
            assert _has_crowded_tag(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<select>" + b"<option>1" * 150_000, Weight.BOMB),  # four minutes
        (b"<SELECT>" + b"<oPtion>1" * 5_000, Weight.HEAVY),
        (b"<select>" + b"<option>1" * 300, Weight.LIGHT),
        (b"<div>" * 6_000, Weight.HEAVY),
        (b"<p>" + b"".join(b"<b id=%d>" % n for n in range(400)) + b"</p>" + b"<p>x" * 400, Weight.HEAVY),
        (b"<p>" + b"".join(b"<b id=%d>y</b>" % n for n in range(400)) + b"</p>" + b"<p>x" * 400, Weight.LIGHT),
        (b'<a href="?q=" title="a > b">x</a> ' * 1_000, Weight.LIGHT),
    ],
    ids=["select", "small select", "ordinary select", "nesting", "formatting", "closed formatting", "quoted brackets"],
)
def test_weights(body: bytes, expected: Weight) -> None:
    """What is read at once, what is read elsewhere, and what is not parsed."""
    assert weight(body) is expected


BREAKS = b"<svg>" + b"<option selected>" * 200
FACTS: dict[str, Any] = {"url": "http://a.test/", "content_type": "text/html", "x_robots": [], "token": "TestBot"}


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback."""
    monkeypatch.setattr(native, "reader", None)


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    ("body", "may"),
    [
        (BREAKS, True),
        (b"<MATH><mi><OPTION a='>' Selected=x>", True),
        (b"<p><svg></svg><select><option>1<option selected>2</select>", True),  # harmless, and not told apart
        (b"<select><option selected>2</select><svg></svg>", False),
        (b"<svg><path></svg><p class=selected><select><option>1</select>", False),
        (b"<p>option selected svg", False),
    ],
)
def test_an_option_that_is_selected_behind_foreign_elements(body: bytes, may: bool) -> None:
    """Told by the order of three words, which costs next to nothing."""
    assert (weight(body) is Weight.HEAVY) == may


@pytest.mark.usefixtures("in_python")
def test_such_a_page_is_not_read_in_place() -> None:
    """Nor parsed at all here: this process would end."""
    assert read_light_html(BREAKS, **FACTS) is None


@pytest.mark.skipif(native.reader is None, reason=f"one reader only: {native.choice.why}")
def test_the_native_reader_reads_it() -> None:
    """Its lexbor is corrected: again and again, with memory that another page has used."""
    for _ in range(20):
        facts = read_light_html(BREAKS + b"<a href=/x>x", **FACTS)

        assert facts is not None
        assert len(facts.links) == 1
