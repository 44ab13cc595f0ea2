"""Pages made of what regular expressions stumble over: each costs what its length costs, and others are not held up."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.arena import Arena, Asked, answer, arena

LARGE = 400_000
#: Three links, so that no page looks like an application's empty shell, for which a browser would be started.
LINKS = '<a href="/">a</a><a href="/?b">b</a><a href="/?c">c</a>'
SCRIPTED = f"<!doctype html><script>x</script><body>{LINKS}"

#: One run each: a refresh whose number never ends (15 s for 50 KB once), words that ask for scripts (15 s), and others.
PAGES = {
    "/refresh": f'<meta http-equiv="refresh" content="{"0" * 50_000}x">{LINKS}',
    "/refresh-blanks": f'<meta http-equiv="refresh" content="0{" " * LARGE}x">{LINKS}',
    "/refresh-url": f'<meta http-equiv="refresh" content="0;{"url = " * (LARGE // 6)}">{LINKS}',
    "/notice": SCRIPTED + "activ" * (LARGE // 5),
    "/notice-blanks": SCRIPTED + "enable" + "\u2003" * (LARGE // 3) + "x",
    "/notice-noscript": f"{SCRIPTED}<noscript>{'habilit' * (LARGE // 7)}</noscript>",
    "/within": SCRIPTED + "<div id=app>" * 3_000 + "word " * 60_000,
    "/long-links": f'{LINKS}<a href="/{"A" * 100_000}">x</a><a href="/?{"a&" * 50_000}">y</a>',
}


def evil(web: Arena) -> str:
    """A site of such pages."""
    front = answer("<!doctype html>" + "".join(f'<a href="{path}">x</a>' for path in PAGES))

    def make(asked: Asked) -> bytes | None:
        return front if asked.path == "/" else answer(PAGES[asked.path]) if asked.path in PAGES else None

    return web.site("evil.test", make)


def test_no_page_holds_up_the_others(tmp_path: Path) -> None:
    """All pages are read, and the innocent site is asked at its pace meanwhile."""
    with arena(tmp_path) as web:
        crawl = web.crawl(
            web.innocent(),
            evil(web),
            until=lambda: set(PAGES) <= set(web.paths("evil.test")) and len(web.of("innocent.test")) > 20,
        )
        web.assert_undisturbed(least=20, during="text that regular expressions stumble over")
    assert "could not read" not in crawl.log
    assert "errors/ours" not in crawl.log
