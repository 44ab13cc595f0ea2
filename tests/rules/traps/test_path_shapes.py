"""Traps seen by a path's shape."""

import pytest

from crawlerproject.rules.traps.path_shapes import trap


@pytest.mark.parametrize(
    ("path", "trapped"),
    [
        ("/", False),
        ("/a/b/c", False),
        ("/a/a", False),
        ("/a/a/b", False),
        ("/a/a/a", True),  # Heritrix: /x/x/x
        ("/a/b/a/b/a/b", True),
        ("/a/b/a/b/a/bc", False),
        ("/a/b/c/a/d/a", False),
        ("/a/b/a/c/a/d/a", True),  # Zeno: more than three times
        ("/1/b/1/b/2/b/1/c/d/e", True),  # Zeno: ten deep, two segments three times
        ("/" + "/".join(str(n) for n in range(20)), False),
        ("/" + "/".join(str(n) for n in range(21)), True),
        ("/2024/10/10/10-ways", False),
        ("/www.x.com/a/www.x.com/a", True),
        ("/wiki/www.x.com", False),
        ("/web/2020/http://www.x.com/", False),
        ("/a//b//c", False),
        ("", False),
    ],
)
def test_trap(path: str, trapped: bool) -> None:
    """Nesting, repetition, host names as folders."""
    assert trap(path) is trapped


def test_the_hosts_own_name_as_a_folder() -> None:
    """A link that lost its http:// leads deeper for ever."""
    assert trap("/www.x.com/a", "www.x.com")
    assert not trap("/www.x.com.html", "www.x.com")
    assert not trap("/localhost/a", "localhost")


def test_a_self_nesting_path_ends_soon() -> None:
    """However a path nests into itself, fewer than a dozen of its addresses pass."""
    paths = ["/start" + "/next/page" * n for n in range(50)]
    assert sum(not trap(path) for path in paths) <= 3
    assert all(trap(path) for path in paths[3:])
