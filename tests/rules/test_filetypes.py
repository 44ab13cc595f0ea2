"""Useless extensions: of the path's last segment only."""

import pytest

from crawlerproject.rules.filetypes import SKIP_EXTENSIONS, extensions_of, useless


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("/a.jpg", True),
        ("/a.JPG", True),
        ("/a.tar.gz", True),
        ("/a.webp", True),
        ("/a.avif", True),
        ("/font.woff2", True),
        ("/debian.iso", True),
        ("/app.apk", True),
        ("/style.css;jsessionid=1", True),
        ("/page.php", False),
        ("/a.jpg/", False),
        ("/a.jpg/page", False),
        ("/file.pdf", False),
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


def test_default_list_is_well_formed() -> None:
    """Lower-case, no dot: as useless() compares."""
    assert extensions_of(SKIP_EXTENSIONS) == SKIP_EXTENSIONS
    assert not SKIP_EXTENSIONS & {"html", "htm", "php", "asp", "aspx", "jsp", "pdf", "txt", "xml", "com", "org", "net"}


def test_an_operators_list_is_read_kindly() -> None:
    """Dots, capitals and blanks do not matter."""
    assert extensions_of([".PNG", " jpg ", "", "."]) == {"png", "jpg"}
