"""The never-crawl list: domains with all below them, addresses, comments and bad lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.url.exclusion import Exclusion

LIST = """\
# asked on 3 May
Example.org   # the whole domain
*.example.net
.example.edu.
bücher.example
192.0.2.7
2001:DB8::1

not a domain
http://example.com/
-bad-.example
straße.example
bücher.example/x
""".splitlines()


@pytest.mark.parametrize(
    ("host", "excluded"),
    [
        ("example.org", True),
        ("www.example.org", True),
        ("a.b.example.org", True),
        ("example.org.", True),
        ("notexample.org", False),
        ("example.org.evil.test", False),
        ("org", False),
        ("example.net", True),
        ("www.example.net", True),
        ("x.example.edu", True),
        ("xn--bcher-kva.example", True),
        ("www.xn--strae-oqa.example", True),  # as addresses are read, not by the standard of 2003
        ("strasse.example", False),
        ("192.0.2.7", True),
        ("192.0.2.70", False),
        ("[2001:db8::1]", True),
        ("example.com", False),
        ("", False),
        (".", False),
    ],
)
def test_excludes(host: str, excluded: bool) -> None:
    """A listed domain excludes itself and its subdomains, and nothing else."""
    exclusion, _ = Exclusion.parse(LIST)
    assert exclusion.excludes(host) is excluded
    assert (exclusion.line_of(host) is not None) is excluded


def test_bad_lines_are_named_by_number_and_skipped() -> None:
    """Each bad line is reported, the others hold."""
    exclusion, problems = Exclusion.parse(LIST)
    assert [problem.line for problem in problems] == [9, 10, 11, 13]
    assert len(exclusion) == 7


def test_line_of_names_the_line() -> None:
    """The operator learns which line excludes a host."""
    assert Exclusion.parse(LIST)[0].line_of("www.example.org") == 2


def test_a_file_with_a_byte_order_mark() -> None:
    """Editors that write one do not hide the first line."""
    assert Exclusion.parse(["\ufeffexample.org"])[0].excludes("example.org")


@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=30))
def test_any_lines_are_taken(lines: list[str], host: str) -> None:
    """No content of the file, and no host name, breaks it."""
    assert Exclusion.parse(lines)[0].excludes(host) in (True, False)
