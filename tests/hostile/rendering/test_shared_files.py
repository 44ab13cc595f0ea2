"""Scripts that pages of four sites load from one host, which answers some origins otherwise than others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import NOT_FOUND, Arena, Asked, Crawled, answer, arena
from tests.hostile.ledger import pays
from tests.web.profiles.apps import shell

SITES = {f"{name}.test" for name in ("alpha", "beta", "gamma", "delta")}
PAGES = 2  # of each site; the second is named by the first
# By how the script is loaded (as a module with the page's Origin, or as a classic script without) and answered.
MODULES, CLASSIC = ("varies", "echoes", "open", "guarded"), ("plain", "moody")
_SCRIPT = "for (const n of [1, 2, 3]) document.body.insertAdjacentHTML('beforeend', `<a href='/NAME/${n}'>link</a> `)"


class FileHost:
    """Answers by Origin; the first origin that wants ``guarded`` and the first request for ``moody`` get a 404."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}

    def make(self, asked: Asked) -> bytes | None:
        """One answer."""
        name = asked.path.strip("/").removesuffix(".js")
        if name not in MODULES + CLASSIC:
            return None
        fields = dict(line.split(": ", 1) for line in asked.head.decode().split("\r\n")[1:] if ": " in line)
        origin = fields.get("Origin", "")
        first = name not in self.first
        refused = self.first.setdefault(name, origin)
        if (name == "guarded" and refused == origin) or (name == "moody" and first):
            return NOT_FOUND
        allowed = {"open": "*", "guarded": origin, "varies": origin, "echoes": origin}.get(name)
        headers = {"Access_Control_Allow_Origin": allowed} if allowed else {}
        if name == "varies":
            headers["Vary"] = "Accept-Encoding, Origin"
        return answer(_SCRIPT.replace("NAME", name), mime="text/javascript", **headers)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl for all tests here."""
    with arena(tmp_path_factory.mktemp("files")) as web:
        web.site("files.test", FileHost().make)
        tags = [f'<script type="module" src="{web.url("files.test", f"/{name}.js")}"></script>' for name in MODULES]
        tags += [f'<script src="{web.url("files.test", f"/{name}.js")}"></script>' for name in CLASSIC]

        def app(asked: Asked) -> bytes | None:
            more = {"/": "<a href='/second'>second</a>", "/second": ""}.get(asked.path)
            return None if more is None else answer(shell("".join(tags), body=more))

        seeds = [web.site(name, app) for name in sorted(SITES)]
        settings = {"RENDER": "auto", "RENDER_SCREENSHOT": "False"}
        yield web, web.crawl(*seeds, settings=settings)


def shown(web: Arena, name: str) -> set[str]:
    """The sites where the crawl found the links that this script makes."""
    return {visit.host for visit in web.visits if visit.path.startswith(f"/{name}/")}


def test_every_site_is_shown(crawled: tuple[Arena, Crawled]) -> None:
    """Whatever the host of the scripts says to another site's origin, and whether or not it says so in Vary."""
    web, crawl = crawled
    rows = list(read_log(crawl.folder / "log"))

    assert [shown(web, name) for name in ("varies", "echoes", "open", "plain")] == [SITES] * 4
    assert sum(row["rendered"] and row["reason"] == "rendered" for row in rows) == PAGES * len(SITES)


def test_what_one_site_was_refused_the_others_get(crawled: tuple[Arena, Crawled]) -> None:
    """A guard's 404 to one origin, and one that was passing, stay with the site that met them."""
    web, _ = crawled

    assert len(shown(web, "guarded")) == len(SITES) - 1
    others = min(len(shown(web, name)) for name in ("guarded", "moody"))
    least = len(SITES) - 1
    pays("a 404 to one site's page in the browser", "the other sites", others, "of 3 sites shown", at_least=least)


def test_no_file_is_asked_for_oftener_than_its_answers_differ(crawled: tuple[Arena, Crawled]) -> None:
    """Once for all sites where they may share it, else once for each; a failure is not asked for again by its site."""
    web, _ = crawled
    counts = Counter(web.paths("files.test"))

    assert {name: counts[f"/{name}.js"] for name in MODULES + CLASSIC} == {
        "varies": 4, "echoes": 4, "open": 1, "guarded": 4, "plain": 1, "moody": 2,
    }  # fmt: skip
