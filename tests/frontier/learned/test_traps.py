"""What the frontier learns about traps: refused when found and when leased, stored with commits, overruled."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.passage import DiscoveredUrl, Visit
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_RENDER, FLAG_ROBOTS, FLAG_SEED
from crawlerproject.rules.traps.template_yield import FIRST_PAGES, SIMILAR_COSTS_PAGES
from crawlerproject.rules.url.refused_urls import AddressRules, Exclusion
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.operator_files.watched_lists import TrapAllowFile
from crawlerproject.stores.protocols import Changes, QueuedPage
from tests.stores.memory_store import MemoryStore

HOST = "a.example"
URL = "http://a.example/c/7"


def barren(model: TrapModel, url: str) -> None:
    """A page that shows nothing."""
    model.learn(Visit(row(url), Reason.HTTP_ERROR, 404), 0.0)


@pytest.fixture
def trapped() -> TrapModel:
    """A model that knows /c/{n} for a trap."""
    model = TrapModel(MemoryStore())
    for number in range(FIRST_PAGES):
        barren(model, f"http://a.example/c/{number}")
    return model


def filters(model: TrapModel) -> UrlFilters:
    """The filters of a crawl without bounds."""
    never = SimpleNamespace(current=lambda now: Exclusion())
    return UrlFilters(Scope("any"), never, AddressRules(), model, max_urls_per_host=10)


def row(url: str, flags: int = 0) -> QueuedPage:
    """A queued URL."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 0, 1, 1, "L", "", 0, flags)


def test_a_trap_is_refused_when_found_and_when_leased(trapped: TrapModel) -> None:
    """Seeds and robots.txt are not; nor are other templates and hosts."""
    gate = filters(trapped)
    assert gate.refusal(DiscoveredUrl(parse(URL), 1, "L", "", 1), 0.0) is Reason.TRAP
    assert gate.refusal(DiscoveredUrl(parse(URL), 0, "", "", 0, FLAG_SEED), 0.0) is None
    assert gate.refusal(DiscoveredUrl(parse("http://a.example/d/7"), 1, "L", "", 1), 0.0) is None
    assert gate.refusal(DiscoveredUrl(parse("http://b.example/c/7"), 1, "L", "", 1), 0.0) is None
    assert gate.refusal_again(row(URL), 0.0) is Reason.TRAP
    assert gate.refusal_again(row(URL, FLAG_SEED), 0.0) is None
    assert gate.refusal_again(row(URL, FLAG_ROBOTS), 0.0) is None


def facts_of(traps: TrapModel) -> list[tuple[str, bytes]]:
    """What the next commit stores of it."""
    return [fact for model in traps.models for fact in model.facts()]


def test_what_is_learnt_reaches_the_store_even_when_a_commit_fails(trapped: TrapModel) -> None:
    """Facts of a commit that failed, and of pages that ended during one, are in the next."""
    store = MemoryStore()
    failed = facts_of(trapped)
    barren(trapped, "http://b.example/")
    again = facts_of(trapped)
    barren(trapped, "http://c.example/")
    store.apply(Changes(facts=again))
    for model in trapped.models:
        model.stored(Changes(), again)

    assert [name for name, _ in failed] == ["traps/a.example"]
    assert [name for name, _ in again] == ["traps/a.example", "traps/b.example"]
    assert [name for name, _ in facts_of(trapped)] == ["traps/c.example"]
    assert TrapModel(store).refuses(HOST, URL, 0.0)


def write(path: Path, text: str, at: int) -> None:
    """Write the file with a modification time of its own."""
    path.write_text(text, "utf-8")
    os.utime(path, (at, at))


def test_the_operator_overrules_while_the_crawl_runs(tmp_path: Path, trapped: TrapModel) -> None:
    """A host and a template, a host, every host; after the interval, and not for what is not named."""
    path = tmp_path / "allow.txt"
    write(path, "# none\n", 1)
    model = TrapModel(MemoryStore(), TrapAllowFile(path, 60))
    for number in range(FIRST_PAGES):
        barren(model, f"http://a.example/c/{number}")
    assert model.refuses(HOST, URL, 0.0)
    write(path, "a.example /d/{n}\nb.example\n", 2)
    assert model.refuses(HOST, URL, 60.0)
    write(path, "a.example /c/{n}\n", 3)
    assert model.refuses(HOST, URL, 119.0)
    assert not model.refuses(HOST, URL, 120.0)
    assert model.refuses_shape(HOST, "http://a.example/x/x/x/x", 120.0)
    for line in ("A.Example\n", "*\n"):
        write(path, line, 4 + len(line))
        allowed = TrapModel(MemoryStore(), TrapAllowFile(path, 60))
        assert not allowed.refuses_shape(HOST, "http://a.example/x/x/x/x", 0.0)


def test_a_lost_allow_list_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One warning; bad lines are named by their number."""
    path = tmp_path / "allow.txt"
    write(path, "a.example\na b c\nb.example x\n", 1)
    allow = TrapAllowFile(path, 1)
    assert allow.allows(HOST, "", 0.0)
    assert "line 2" in caplog.text
    assert "line 3" in caplog.text
    path.unlink()
    assert all(allow.allows(HOST, "", second) for second in (2.0, 4.0, 6.0))
    assert caplog.text.count("cannot be read") == 1


def visit(reason: Reason, status: int | None = 200, location: str = "", flags: int = 0, **more: Any) -> Visit:
    """A visit to the one page."""
    more.setdefault("digest", b"\0" * 20)
    return Visit(row(URL, flags), reason, status, location=location, **more)


@pytest.mark.parametrize(
    ("ended", "spends"),
    [
        (visit(Reason.HTTP_ERROR, 404), True),
        (visit(Reason.REDIRECT, 302, "http://a.example/other"), True),
        (visit(Reason.FETCHED, marks=(5,)), True),  # new the first time only
        (visit(Reason.FETCHED, duplicate=Duplicate("near", "http://a.example/other", 3)), True),
        (visit(Reason.REDIRECT, 302, "http://b.example/"), False),
        (visit(Reason.RENDERED, None, marks=(5,), flags=FLAG_RENDER), True),
        (visit(Reason.CHALLENGE, 403), False),
        (visit(Reason.RATE_LIMITED, 429), False),
        (visit(Reason.NOT_MODIFIED, 304), False),
        (visit(Reason.HTTP_ERROR, 304), False),
        (visit(Reason.CONNECT_FAILED, None), False),
        (visit(Reason.HTTP_ERROR, 404, flags=FLAG_ROBOTS), False),
        (visit(Reason.SUBSCRIBED, 202, flags=FLAG_HUB), False),
        (visit(Reason.FETCHED, shell=(3, 1)), False),
        (visit(Reason.RENDERED, None, flags=FLAG_RENDER), False),
    ],
)
def test_what_a_page_says_about_its_template(ended: Visit, spends: bool) -> None:
    """Errors, redirects within the host and known texts cost; what is about the host or the moment does not."""
    model = TrapModel(MemoryStore())
    for _ in range(FIRST_PAGES + 2):
        model.learn(ended, 0.0)
    assert model.refuses(HOST, URL, 0.0) is spends


@pytest.mark.parametrize(
    ("more", "spends"),
    [
        ({}, False),
        ({"duplicate": Duplicate("near", "http://a.example/other", 3)}, False),
        ({"duplicate": Duplicate("exact", "http://b.example/mirror")}, False),  # another host's
        ({"duplicate": Duplicate("canonical", "http://a.example/other")}, False),
        ({"too_slow": True}, True),
    ],
)
def test_new_texts_are_no_trap(more: dict[str, Any], spends: bool) -> None:
    """Unless they dripped; a thousand words around thirty of a page's own make none."""
    model = TrapModel(MemoryStore())
    for mark in range(1, FIRST_PAGES + 2):
        model.learn(visit(Reason.FETCHED, marks=(mark,), **more), 0.0)
    assert model.refuses(HOST, URL, 0.0) is spends


@pytest.mark.parametrize(("apart", "spends"), [(0, True), (70, False)])
def test_of_texts_that_are_nearly_another_pages_some_must_be_wholly_new(apart: int, spends: bool) -> None:
    """Without any, so many end the template as they do that cost an eighth; with one in seventy it never ends."""
    model = TrapModel(MemoryStore())
    for mark in range(1, int(FIRST_PAGES / SIMILAR_COSTS_PAGES) + 2):
        near = Duplicate("near", "http://a.example/other", 3)
        model.learn(visit(Reason.FETCHED, marks=(mark,), duplicate=None if apart and mark % apart == 0 else near), 0.0)
    assert model.refuses(HOST, URL, 0.0) is spends


@pytest.mark.parametrize(("new", "hops", "spends"), [(True, 1, False), (True, 2, False), (False, 1, True)])
def test_a_redirect_within_the_host_is_worth_what_it_leads_to(new: bool, hops: int, spends: bool) -> None:
    """By one redirect or two; where they all lead to one text the template is a trap."""
    model = TrapModel(MemoryStore())
    for number in range(1, 2 * FIRST_PAGES):
        ways = [f"http://{HOST}/{place}/{number}" for place in "cde"][: hops + 1]
        for place, url in enumerate(ways):
            row = visit(Reason.FETCHED).row._replace(
                url=url, hops="L" + "R" * place, via=ways[place - 1] if place else ""
            )
            last = place == hops
            ended = visit(Reason.FETCHED if last else Reason.REDIRECT, marks=(number if new else 1,) if last else ())
            model.learn(replace(ended, row=row, location="" if last else ways[place + 1]), 0.0)
    assert model.refuses(HOST, f"http://{HOST}/c/999", 0.0) is spends


def test_ports_of_a_name_share_its_budget() -> None:
    """Three ports, a third of the budget each; what the operator allows of one port is allowed there."""
    model = TrapModel(MemoryStore())
    for number in range(FIRST_PAGES + 2):
        barren(model, f"http://{HOST}:{8000 + number % 3}/c/{number}")

    assert model.refuses(HOST, f"http://{HOST}/c/999", 0.0)
    assert [name for name, _ in facts_of(model)] == [f"traps/{HOST}"]


def test_a_port_that_an_older_version_knew_is_remembered() -> None:
    """It kept what each port yielded by itself."""
    store = MemoryStore()
    old = TrapModel(store)
    for number in range(FIRST_PAGES + 2):
        barren(old, f"http://{HOST}/c/{number}")
    store.apply(Changes(facts=[(name + ":81", packed) for name, packed in facts_of(old)]))

    assert TrapModel(store).refuses(f"{HOST}:81", f"http://{HOST}:81/c/999", 0.0)


def test_a_file_that_is_no_page_is_told_by_its_digest() -> None:
    """Two hundred different PDFs are two hundred new texts; one PDF two hundred times is one."""
    model = TrapModel(MemoryStore())
    for number in range(200):
        model.learn(visit(Reason.FETCHED, digest=number.to_bytes(4, "big") + b"x" * 16), 0.0)
    assert not model.refuses(HOST, URL, 0.0)
    for _ in range(201):
        model.learn(visit(Reason.FETCHED, digest=b"same" * 5), 0.0)
    assert model.refuses(HOST, URL, 0.0)
