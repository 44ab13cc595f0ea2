"""Real pages by site, pairs of them, and the judge that labels each pair without any SimHash."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page.page import read_html

DOCS = Path("/usr/share/doc")
#: site -> where its pages are; Debian's packages of the same names
PACKAGES = {
    "postgresql-doc-15": "postgresql-doc-15/html/*.html",
    "python3.11-doc": "python3.11/html/**/*.html",
    "linux-doc-6.1": "linux-doc-6.1/html/**/*.html",
    "debian-handbook": "debian-handbook/html/en-US/*.html",
}
#: Languages whose handbook is partly not translated: the same text on several sites, as nature has it.
LANGUAGES = ("fa-IR", "el-GR", "da-DK", "ca-ES", "hr-HR", "cs-CZ", "ar-MA", "ro-RO", "uk-UA", "sv-SE")
WEB = "web"  # of --pages: every page is a site of its own

SAME, OTHER = 0.85, 0.6  # Jaccard from which texts are the same, and under which they are not; between: left out
_MAIN = "main, article, [role=main], div.body, div#content, div.document"
_SHINGLE = 5
_TRIED = 40  # pages of the same site among which the likest frame is looked for
_WORDS = (  # noqa: SIM905 - a list literal of this would be three times as long
    "offer today only discount shipping free members join newsletter limited price compare best travel summer "
    "insurance credit quote install update premium account trial cancel anytime deal week save more"
).split()


class Page:
    """One page of one site."""

    def __init__(self, site: str, name: str, source: bytes) -> None:
        self.site, self.name, self.source = site, name, source

    @cached_property
    def text(self) -> str:
        """What the crawler compares: visible, without links and frame."""
        return read_html(self.source, url="http://x.test/", content_type=None, x_robots=(), token="x").text.decode()

    @cached_property
    def full(self) -> str:
        """All that is visible."""
        tree = _visible(self.source)
        return tree.body.text(separator=" ", skip_empty=True) if tree.body else ""

    @cached_property
    def words(self) -> frozenset[str]:
        """All words that are visible."""
        return frozenset(self.full.split())

    @cached_property
    def main(self) -> frozenset[int]:
        """The judge's view: every five words in a row of the main element, links included; the body without one."""
        tree = _visible(self.source)
        tree.strip_tags(["nav", "header", "footer", "aside"], recursive=True)
        node = tree.css_first(_MAIN) or tree.body
        words = re.findall(r"\w+", node.text(separator=" ").lower()) if node else []
        return frozenset(hash(tuple(words[at : at + _SHINGLE])) for at in range(len(words) - _SHINGLE + 1))


class Pair(NamedTuple):
    """Two pages and what they are to each other."""

    one: Page
    two: Page
    same: bool
    kind: str


def _visible(source: bytes) -> LexborHTMLParser:
    tree = LexborHTMLParser(source)
    tree.strip_tags(["script", "style", "noscript", "template", "svg"], recursive=True)
    return tree


def jaccard(one: Page, two: Page) -> float:
    """Shared shingles of the main texts, of all that either has."""
    return len(one.main & two.main) / max(1, len(one.main | two.main))


def install() -> None:
    """Install the packages that are missing (Debian, as root)."""
    missing = [name for name, pages in PACKAGES.items() if not any(DOCS.glob(pages))]
    if missing:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], check=True)


def sites(most: int, web: Path | None, chance: random.Random) -> dict[str, list[Page]]:
    """Up to ``most`` pages of each site, with enough text to be compared."""
    found: dict[str, list[Page]] = {}
    for site, pattern in PACKAGES.items():
        found[site] = _read(site, sorted(DOCS.glob(pattern)), most, chance)
    names = {page.name for page in found["debian-handbook"]}
    for language in LANGUAGES:
        paths = sorted((DOCS / "debian-handbook/html" / language).glob("*.html"))
        found[f"handbook {language}"] = _read(
            f"handbook {language}", [p for p in paths if p.name in names], most, chance
        )
    if web is not None:
        found[WEB] = _read(WEB, sorted(web.rglob("*.html")), most, chance)
    return {site: pages for site, pages in found.items() if pages}


def _read(site: str, paths: list[Path], most: int, chance: random.Random) -> list[Page]:
    chosen = chance.sample(paths, min(most, len(paths)))
    pages = [Page(site, path.name, path.read_bytes()) for path in sorted(chosen)]
    return [page for page in pages if len(page.text.split()) >= 50]


def pairs(found: dict[str, list[Page]], changed: int, chance: random.Random) -> Iterator[Pair]:
    """All pairs that the judge can label."""
    for one, two, kind in _candidates(found, changed, chance):
        alike = jaccard(one, two)
        if alike >= SAME or alike < OTHER:
            yield Pair(one, two, alike >= SAME, kind)


def _candidates(found: dict[str, list[Page]], changed: int, chance: random.Random) -> Iterator[tuple[Page, Page, str]]:
    everything = [page for pages in found.values() for page in pages]
    for page in chance.sample(everything, min(changed, len(everything))):
        kind = chance.choice(list(_CHANGES))
        yield _changed(page, kind, chance), _changed(page, kind, chance), f"changed: {kind}"
    english = {page.name: page for page in found["debian-handbook"]}
    for language in LANGUAGES:
        for page in found.get(f"handbook {language}", ()):
            yield english[page.name], page, "another language of the handbook"
    for site, pages in found.items():
        if site.startswith("handbook "):
            continue
        for page in pages:
            others = chance.sample(pages, min(_TRIED, len(pages)))
            others = [other for other in others if other is not page]
            yield page, others[0], "same site"
            words = set(page.full.split())
            likest = max(
                others, key=lambda other: len(words & set(other.full.split())) / (len(other.full) + len(page.full))
            )
            yield page, likest, "same site, likest frame"


# --- changes as sites make them between two visits --------------------------------------------------


def _noise(chance: random.Random, least: int, most: int) -> bytes:
    return " ".join(chance.choices(_WORDS, k=chance.randint(least, most))).encode()


def _date(source: bytes, chance: random.Random) -> bytes:
    day = b"<p>Generated %d-%02d-%02d, %d readers online</p>"
    made = day % (chance.randint(2000, 2026), chance.randint(1, 12), chance.randint(1, 28), chance.randint(1, 9999))
    return _before(source, b"</body>", made)


def _menu(source: bytes, chance: random.Random) -> bytes:
    items = b"".join(b'<li><a href="/%d">%s</a></li>' % (n, _noise(chance, 1, 3)) for n in range(chance.randint(5, 30)))
    return re.sub(rb"(<body[^>]*>)", lambda found: found[1] + b"<ul>" + items + b"</ul>", source, count=1)


def _advert(source: bytes, chance: random.Random) -> bytes:
    ends = [found.end() for found in re.finditer(rb"</p>", source)] or [len(source)]
    at = chance.choice(ends)
    return source[:at] + b'<div class="ad">' + _noise(chance, 10, 30) + b"</div>" + source[at:]


def _session(source: bytes, chance: random.Random) -> bytes:
    token = b"?sid=%016x" % chance.getrandbits(64)
    return re.sub(rb'(href="[^"#?]+)"', lambda found: found[1] + token + b'"', source)


def _related(source: bytes, chance: random.Random) -> bytes:
    items = b"".join(b"<li>%s</li>" % _noise(chance, 3, 8) for _ in range(chance.randint(2, 5)))
    return _before(source, b"</body>", b"<h3>Related</h3><ul>" + items + b"</ul>")


def _before(source: bytes, mark: bytes, added: bytes) -> bytes:
    at = source.lower().rfind(mark)
    return source + added if at < 0 else source[:at] + added + source[at:]


_CHANGES = {"date": _date, "menu": _menu, "advert": _advert, "session": _session, "related": _related}


def _changed(page: Page, kind: str, chance: random.Random) -> Page:
    return Page(page.site, page.name, _CHANGES[kind](page.source, chance))
