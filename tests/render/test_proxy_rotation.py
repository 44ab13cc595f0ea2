"""Proxies take turns, and a bad one rests."""

from crawlerproject.render.proxy_rotation import RenderProxies


def test_they_take_turns_and_a_bad_one_rests() -> None:
    """Three failures in a row send one away for ten minutes; a success in between forgives."""
    proxies = RenderProxies(["http://a", "http://b"])
    assert [proxies.choose(0.0) for _ in range(3)] == ["http://a", "http://b", "http://a"]
    for failed in (True, True, False, True, True):
        proxies.answered("http://a", 0.0, failed=failed)
    assert {proxies.choose(0.0) for _ in range(4)} == {"http://a", "http://b"}

    proxies.answered("http://a", 0.0, failed=True)

    assert {proxies.choose(599.0) for _ in range(4)} == {"http://b"}
    assert {proxies.choose(601.0) for _ in range(4)} == {"http://a", "http://b"}


def test_when_all_rest_one_is_taken_all_the_same() -> None:
    """Never a request without one: the operator may have a reason."""
    proxies = RenderProxies(["http://a", "http://b"])
    for proxy, now in (("http://b", 0.0), ("http://a", 5.0)):
        for _ in range(3):
            proxies.answered(proxy, now, failed=True)

    assert proxies.choose(10.0) == "http://b"
    assert RenderProxies([]).choose(0.0) == ""
