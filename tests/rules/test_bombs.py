"""rules/bombs: pages that would stall a parser are recognised in linear time, ordinary ones are not."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.bombs import _FORMATTING_TAG, _formatting_at_most, is_bomb

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


@pytest.mark.parametrize("unit", [b"<", b"<a ", b'<a b="', b"<a b='x\"", b"<a\"'", b"<p = ", b"<a/", b"</"])
def test_the_check_is_no_bomb_itself(unit: bytes) -> None:
    """2 MiB of anything takes well under two seconds of CPU: no quantifier backtracks."""
    started = time.process_time()
    is_bomb(unit * (2_097_152 // len(unit)))
    assert time.process_time() - started < 2.0


@given(st.text("<>/bBisuemtcodfnalrgkSP \n", max_size=60))
def test_the_quick_count_of_formatting_tags_is_never_too_low(text: str) -> None:
    """What it lets pass the expression would have let pass."""
    body = text.encode()

    assert _formatting_at_most(body) >= len(_FORMATTING_TAG.findall(body))
