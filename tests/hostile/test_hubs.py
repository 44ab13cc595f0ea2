"""Feeds that name a stranger's comment form as their hub: the form gets one POST, after its host's robots.txt."""

from __future__ import annotations

from pathlib import Path

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.web.ports import free_port

FEEDS = 8


def evil(web: Arena, name: str) -> str:
    """A site of feeds, each of which names another path of the victim's as its hub."""

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/":
            return page(*(f"/feed/{number}" for number in range(FEEDS)), text="my feeds")
        number = asked.path.removeprefix("/feed/")
        if not number.isdigit():
            return None
        hub, own = web.url("victim.test", f"/comment?post={number}"), web.url(name, asked.path)
        links = f'<link rel="hub" href="{hub}"/><link rel="self" href="{own}"/>'
        return answer(f'<feed xmlns="http://www.w3.org/2005/Atom">{links}</feed>', mime="application/atom+xml")

    return web.site(name, make)


def test_a_comment_form_is_no_hub(tmp_path: Path) -> None:
    """Sixteen feeds of two sites: one POST in all, after robots.txt; the log says so, and others are not held up."""
    with arena(tmp_path) as web:
        seeds = [web.innocent(), evil(web, "evil.test"), evil(web, "worse.test")]
        web.site("victim.test", lambda asked: answer("thank you") if asked.path.startswith("/comment") else None)

        crawl = web.crawl(
            *seeds,
            settings={"WEBSUB_PORT": str(free_port())},
            until=lambda: (
                all(len(web.of(name)) == 1 + FEEDS for name in ("evil.test", "worse.test"))
                and web.of("victim.test")
                and len(web.of("innocent.test")) > 12
            ),
        )

        asked = web.of("victim.test", robots=True)
        assert [(visit.method, visit.path.partition("?")[0]) for visit in asked] == [
            ("GET", "/robots.txt"),
            ("POST", "/comment"),
        ]
        got = sum(visit.method == "POST" for visit in asked)
        pays("feeds that name a form as their hub", "the form", got, "POSTs of 16", at_most=1)
        web.assert_undisturbed()
    posts = [row for row in read_log(crawl.folder / "log") if row["method"] == "POST"]
    assert [row["reason"] for row in posts] == ["subscribed"]
    assert f"'refused/hub-unproven': {2 * FEEDS - 1}" in crawl.log
