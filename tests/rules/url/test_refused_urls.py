"""URLs refused by their look: extensions, ports, and paths that are traps."""

import tomllib

import pytest

from crawlerproject.rules.url.refused_urls import (
    BAD_PORTS,
    DERIVED,
    MISCHEL,
    SKIP_EXTENSIONS,
    bad_port,
    extensions_of,
    trap,
    useless,
)
from crawlerproject.rules.url.urls import key_of, parse, port_of
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


def test_the_longer_list_of_the_samples() -> None:
    """The ready-made value holds the default, and nothing in which pages, text or feeds come."""
    longer = tomllib.loads((PROJECT / "samples" / "domains.toml").read_text())["settings"]["SKIP_EXTENSIONS"]

    assert len(longer) == len(set(longer)) > 150
    assert set(longer) > SKIP_EXTENSIONS
    assert extensions_of(longer) == set(longer)
    pages = {"html", "htm", "php", "asp", "aspx", "jsp", "pdf", "txt", "xml", "rss", "json", "csv", "com", "org", "au"}
    assert not set(longer) & pages


def test_an_operators_list_is_read_kindly() -> None:
    """Dots, capitals and blanks do not matter."""
    assert extensions_of([".PNG", " jpg ", "", "."]) == {"png", "jpg"}


@pytest.mark.parametrize(
    ("host", "bad"),
    [
        ("example.org", False),
        ("example.org:8080", False),
        ("example.org:443", False),
        ("example.org:22", True),
        ("example.org:25", True),
        ("example.org:6379", True),
        ("example.org:11211", True),
        ("[::1]", False),
        ("[::25]", False),
        ("[::1]:6697", True),
        ("", False),
    ],
)
def test_bad_ports(host: str, bad: bool) -> None:
    """The Fetch standard's port blocking, by host key; an IPv6 address has no port of itself."""
    assert bad_port(host) is bad


def test_the_list_is_whole() -> None:
    """The ends and the middle of the standard's table, and none that the web uses."""
    assert {1, 7, 69, 137, 161, 554, 989, 1719, 4190, 5060, 6000, 6566, 6665, 6679, 6697, 10080} <= BAD_PORTS
    assert not BAD_PORTS & {80, 81, 443, 591, 3000, 5000, 8000, 8008, 8080, 8081, 8443, 8888, 9443}
    assert len(BAD_PORTS) == 85


def test_key_and_port() -> None:
    """A key is its name and port put together again; the default port is 0."""
    for url in ("http://a.test/", "https://a.test:8443/", "http://[::1]:81/", "https://[::1]/", "http://192.0.2.1:82/"):
        host = parse(url).host
        name = host.rpartition(":")[0] if port_of(host) else host
        assert key_of(name, port_of(host)) == host


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
