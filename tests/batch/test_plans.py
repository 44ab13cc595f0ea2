"""Plans: written in order of id, read whatever they hold."""

import gzip
import random
from pathlib import Path

import orjson
import pytest

from crawlerproject.batch.plans import Broken, read_plan, write_plan
from crawlerproject.errors import OperatorError
from crawlerproject.rules.url.urls import parse


def test_a_plan_has_each_page_once_by_domain_in_order_of_id(tmp_path: Path) -> None:
    """Hosts of one domain share a line; the order is the ids', which chance draws."""
    urls = [f"http://{host}.org/{n}" for host in ("a.one", "b.one", "two", "three") for n in range(3)] * 2
    path = tmp_path / "plan.jsonl.gz"

    counts = write_plan(map(parse, urls), path, random.Random(1))

    lines = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert counts == (3, 12)
    assert [line["id"] for line in lines] == sorted(line["id"] for line in lines)
    assert {line["domain"]: len(line["urls"]) for line in lines} == {"one.org": 6, "two.org": 3, "three.org": 3}
    again = tmp_path / "again"
    write_plan(map(parse, urls), again, random.Random(1))
    assert again.read_bytes() == path.read_bytes()


def test_broken_lines_are_reported_by_number_and_the_rest_is_read(tmp_path: Path) -> None:
    """Not JSON, no list, no address; also in a plan that is not compressed."""
    path = tmp_path / "plan"
    path.write_text(
        '{"urls":["http://a.test/"]}\nnot json\n\n{"urls":5}\n[]\n{"urls":["ftp://x/",7,"http://b.test/"]}\n'
    )

    found = list(read_plan(path))

    assert [line.number for line in found if isinstance(line, Broken)] == [2, 4, 5, 6, 6]
    pages = [address.url for line in found if not isinstance(line, Broken) for address in line]
    assert pages == ["http://a.test/", "http://b.test/"]


def test_a_torn_plan_gives_what_stands_before(tmp_path: Path) -> None:
    """Cut within the compressed data."""
    path = tmp_path / "plan.gz"
    lines = b"".join(b'{"urls":["http://a%d.test/%d"]}\n' % (n, n * 7919 % 1000) for n in range(3000))
    path.write_bytes(gzip.compress(lines)[:-500])

    found = list(read_plan(path))

    assert isinstance(found[-1], Broken)
    assert "breaks off" in found[-1].problem
    assert len(found) > 100


def test_an_unreadable_plan_is_the_operators_matter(tmp_path: Path) -> None:
    """One sentence."""
    with pytest.raises(OperatorError, match="cannot be read"):
        list(read_plan(tmp_path))
