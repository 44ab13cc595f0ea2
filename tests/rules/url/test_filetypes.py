"""Useless extensions: of the path's last segment only."""

import re
import tomllib

import pytest

from crawlerproject.rules.url.filetypes import DERIVED, MISCHEL, SKIP_EXTENSIONS, extensions_of, useless
from crawlerproject.settings import OURS
from tests.web.running import PROJECT


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("/a.jpg", True),
        ("/a.JPG", True),
        ("/film.mp4", True),
        ("/report.docx", True),
        ("/slides.ppt", True),
        ("/archive.zip", True),
        ("/style.css;jsessionid=1", True),
        ("/page.php", False),
        ("/a.jpg/", False),
        ("/a.jpg/page", False),
        ("/file.pdf", False),
        ("/notes.txt", False),
        ("/sitemap.xml", False),
        ("/sitemap.xml.gz", False),
        ("/slides.pptx", False),
        ("/site/example.com", False),
        ("/site/example.com.au", False),
        ("/jpg", False),
        ("/", False),
        ("", False),
        ("/.", False),
        ("/v1.2", False),
    ],
)
def test_useless(path: str, skipped: bool) -> None:
    """Pictures, sound, film, archives, programs and page parts are skipped; pages and documents are not."""
    assert useless(path) is skipped


# As the article has it ("Writing a web crawler: politeness"), and with it the issue that asks for it.
ARTICLE = (
    "asx bmp css doc docx flv gif jpeg jpg mid mov mp3 ogg pdf png ppt ra ram rm swf wav wma wmv zip m4a m4v mp4 m4b"
)


def test_the_default_is_mischels_list_word_for_word() -> None:
    """Nothing is added; what is left out is what the crawler derives something from, each with its reason."""
    departures = {"pdf": "scrapy process reads its text, title and links"}

    assert MISCHEL.split() == ARTICLE.split()
    assert set(ARTICLE.split()) - SKIP_EXTENSIONS == departures.keys()
    assert SKIP_EXTENSIONS - set(ARTICLE.split()) == set()
    assert departures == DERIVED
    assert sorted(SKIP_EXTENSIONS) == OURS["SKIP_EXTENSIONS"]
    assert extensions_of(SKIP_EXTENSIONS) == SKIP_EXTENSIONS  # lower-case, no dot: as useless() compares


def test_the_longer_list_of_the_docs() -> None:
    """The ready-made value is one setting, holds the default, and nothing in which pages, text or feeds come."""
    page = (PROJECT / "docs" / "settings.md").read_text()
    (block,) = re.findall(r"^SKIP_EXTENSIONS = \[.*?^\]$", page, re.MULTILINE | re.DOTALL)
    longer = tomllib.loads(block)["SKIP_EXTENSIONS"]

    assert len(longer) == len(set(longer)) > 150
    assert set(longer) > SKIP_EXTENSIONS
    assert extensions_of(longer) == set(longer)
    pages = {"html", "htm", "php", "asp", "aspx", "jsp", "pdf", "txt", "xml", "rss", "json", "csv", "com", "org", "au"}
    assert not set(longer) & pages


def test_an_operators_list_is_read_kindly() -> None:
    """Dots, capitals and blanks do not matter."""
    assert extensions_of([".PNG", " jpg ", "", "."]) == {"png", "jpg"}
