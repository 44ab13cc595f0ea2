"""Paths, patterns and the options of seeds in a whole crawl: what the server was asked for, and what why says."""

from __future__ import annotations

import json
from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir
from tests.crawls.operator.test_resume import run
from tests.hostile.arena import Arena, Asked, answer, arena, page


def sites(web: Arena) -> None:
    """A blog with tags beside a shop; a site that has moved to another name; every page links to everything."""
    paths = ["/", "/blog", "/blog/", "/blog/a", "/blog/b.html", "/blog/tag/x", "/blogger", "/shop/", "/shop/1?print=1"]

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/sitemap.xml":
            listed = "".join(
                f"<url><loc>{web.url('blog.test', path)}</loc></url>" for path in ("/blog/listed", "/shop/9")
            )
            return answer(f"<urlset>{listed}</urlset>", mime="application/xml")
        if asked.path == "/robots.txt":
            return answer(f"Sitemap: {web.url('blog.test', '/sitemap.xml')}\n", mime="text/plain")
        links = [*paths, web.url("new.test", "/"), web.url("new.test", "/home/2")]
        return page(*links, text=f"{asked.host} {asked.path} " * 20)

    web.site("blog.test", make)

    def moved(asked: Asked) -> bytes | None:
        target = web.url("new.test", "/home/")
        return answer(status="301 Moved Permanently", Location=target) if asked.path == "/home/" else None

    web.site("old.test", moved)
    web.site("new.test", make)


def test_a_path_a_moved_seed_and_patterns(tmp_path: Path) -> None:
    """scope=path takes in the folders of the seeds, also where a redirect leads; excludes hold."""
    with arena(tmp_path) as web:
        sites(web)
        seeds = f"seeds={web.url('blog.test', '/blog')},{web.url('old.test', '/home/')}"

        first = run(web, "web", "-a", seeds, "-a", "scope=path", "-a", "exclude=*/tag/* *.html")
        blog, new = sorted(set(web.paths("blog.test"))), sorted(web.paths("new.test"))
        kept = CrawlDir(tmp_path / "crawl").crawl_file.read_text()
        whys = {
            path: json.loads(run(web, web.url("blog.test", path), "--json", command="why").stdout)
            for path in ("/shop/", "/blog/tag/x")
        }
        differs = run(web, "web", "-a", "exclude=*/tag/*")
        accepted = run(
            web,
            "web",
            "-a",
            "exclude=*/tag/*",
            "-a",
            "accept=exclude",
            "-a",
            f"seeds={web.url('blog.test', '/blog/b.html')}",
            "-a",
            "mode=crawl",
        )

    assert first.returncode == 0, first.stderr[-2000:]
    assert blog == ["/blog", "/blog/", "/blog/a", "/blog/listed", "/sitemap.xml"]
    assert new == ["/home/", "/home/2"]
    assert 'scope = "path"' in kept
    assert 'exclude = ["*/tag/*", "*.html"]' in kept
    assert {path: why["reason"] for path, why in whys.items()} == dict.fromkeys(whys, "out-of-scope")
    assert "below none of the seeds' paths there: /blog/" in whys["/shop/"]["rule"]
    assert whys["/blog/tag/x"]["rule"] == "-a exclude=*/tag/*"
    assert differs.returncode == 2
    assert "exclude is '*/tag/* *.html' in this crawl, '*/tag/*' was given" in differs.stderr
    assert "-a accept=exclude" in differs.stderr
    assert accepted.returncode == 2  # the seeds are others as well
    assert "accept=seeds" in accepted.stderr


def test_seeds_with_options_beside_seeds_without(tmp_path: Path) -> None:
    """Each line says what of its own host belongs to the crawl; a changed line must be accepted, an added pattern holds
    for what is queued already.
    """
    with arena(tmp_path) as web:
        sites(web)
        listed = tmp_path / "seeds.txt"
        listed.write_text(
            f"{web.url('blog.test', '/blog/')} scope=path exclude=*/tag/*  # the blog alone\n"
            f"{web.url('blog.test', '/shop/')} include=/shop/* exclude=*print=*\n"
            f"{web.url('new.test', '/')}\n"
        )

        first = run(web, "web", "-a", f"seeds={listed}", "-a", "scope=host", "-a", "max_pages=4")
        before = web.paths("blog.test").count("/blog/b.html")
        listed.write_text(listed.read_text().replace("exclude=*/tag/*", "exclude=*/tag/* exclude=*.html"))
        differs = run(web, "web", "-a", f"seeds={listed}", "-a", "max_pages=0")
        accepted = run(web, "web", "-a", f"seeds={listed}", "-a", "max_pages=0", "-a", "accept=seeds")
        blog, new = sorted(set(web.paths("blog.test"))), set(web.paths("new.test"))

    assert first.returncode == accepted.returncode == 0, first.stderr[-2000:] + accepted.stderr[-2000:]
    assert differs.returncode == 2
    assert "scope=path exclude=*/tag/*' in this crawl" in differs.stderr
    assert set(blog) - {"/blog/b.html"} == {
        "/blog",
        "/blog/",
        "/blog/a",
        "/blog/listed",
        "/shop/",
        "/shop/9",
        "/sitemap.xml",
    }
    assert web.paths("blog.test").count("/blog/b.html") == before
    assert {"/", "/blogger", "/shop/1?print=1", "/home/2"} <= new
