"""Structured data of a page, bounded by kind; and the article in its text."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.rules.page.extract import MAX_STRUCTURED_BYTES, main_text, read_page, read_title

# Of https://ogp.me/ and of HTML 5.1.2, with JSON-LD of schema.org's example beside them.
PAGE = """<!doctype html><head>
<meta property="og:title" content="The Rock"><meta property="og:image" content="a.png">
<meta property="og:image" content="b.png"><meta name="twitter:card" content="summary"><meta name="author" content="x">
<script type="application/ld+json">{"@type": "Recipe", "name": "Cake"}</script>
<script type="Application/LD+JSON">[{"@type": "A"}, {"@type": "B"}]</script>
<script type="application/ld+json">{broken</script>
</head><body><div itemscope itemtype="http://schema.org/Person"><p>I am <b itemprop="name">Amanda
 Roe</b>, <a itemprop="url same" href="/me">here</a>
<div itemprop="band" itemscope itemtype="http://schema.org/Band"><span itemprop="size" content="12">twelve</span></div>
<time itemprop="born" datetime="1990-01-01">then</time></div><i itemprop="nobody's">x</i></body>"""


def structured(body: str) -> Any:
    """What is found in a page; None for nothing."""
    text = read_page(body.encode(), url="http://a.test/", content_type="text/html", structured=True).structured
    return json.loads(text) if text else None


def test_three_vocabularies() -> None:
    """Each as it stands there; what is broken, or belongs to no item, is left out."""
    assert structured(PAGE) == {
        "json-ld": [{"@type": "Recipe", "name": "Cake"}, {"@type": "A"}, {"@type": "B"}],
        "opengraph": {"og:title": ["The Rock"], "og:image": ["a.png", "b.png"], "twitter:card": ["summary"]},
        "microdata": [
            {
                "type": "http://schema.org/Person",
                "properties": {
                    "name": ["Amanda Roe"],
                    "url": ["/me"],
                    "same": ["/me"],
                    "band": [{"type": "http://schema.org/Band", "properties": {"size": ["12"]}}],
                    "born": ["1990-01-01"],
                },
            }
        ],
    }


def test_a_page_without_it_has_none() -> None:
    """And none is read where it is not asked for."""
    assert structured("<p>words") is None
    assert read_page(PAGE.encode(), url="http://a.test/", content_type="text/html").structured == ""


@pytest.mark.parametrize(
    "body",
    [
        f'<script type="application/ld+json">"{"x" * MAX_STRUCTURED_BYTES}"</script>',
        '<script type="application/ld+json">' + "[" * 900 + "]" * 900 + "</script>",
        '<div itemscope itemprop="a">' * 300,
        '<div itemscope><p itemprop="a">' + ("y" * 1000 + '<p itemprop="a">') * 3000,
        "".join(f'<meta property="og:{n}" content="{"z" * 3000}">' for n in range(3000)),
    ],
)
def test_it_is_bounded(body: str) -> None:
    """Too much of one kind costs that kind; the others are there."""
    found = structured(body + '<meta property="og:last" content="x">')

    assert len(json.dumps(found)) <= 2 * MAX_STRUCTURED_BYTES
    assert found is None or set(found) <= {"opengraph", "microdata"}


needs_resiliparse = pytest.mark.skipif(find_spec("resiliparse") is None, reason="Resiliparse is not installed")
ARTICLE = "Sentences of an article, with commas, and an end. " * 20
ARTICLE = f"""<!doctype html><title>t</title><body><nav><ul><li><a href=/>Home</a><li><a href=/b>Other</a></ul></nav>
<main><article><h1>Größe</h1><p>{ARTICLE}</p></article></main><footer>Imprint {"and terms " * 30}</footer>"""


@needs_resiliparse
def test_the_frame_is_left_out_and_measured() -> None:
    """What stands in the article is there, in the page's encoding; the share is of letters."""
    found = main_text(ARTICLE.encode("latin-1"), "text/html; charset=iso-8859-1")

    assert found is not None
    assert found.text.startswith("Größe\n")
    assert "Sentences of an article" in found.text
    assert not {"Home", "Imprint"} & set(found.text.split())
    assert 0.15 < found.boilerplate < 0.5


@needs_resiliparse
@pytest.mark.parametrize("body", [b"", b"<p>", b"<b>" * 100_000 + b"<p>" * 100_000])
def test_a_page_that_says_nothing_or_costs_too_much_has_none(body: bytes) -> None:
    """Bombs are left out as in every reading of ours."""
    assert main_text(body, "text/html") is None


@needs_resiliparse
def test_navigation_of_manuals_and_comments_are_left_out() -> None:
    """DocBook's navigation goes and its boxes stay; a mark of the article is believed, comments are left out."""
    words = "<p>One sentence, and another one.</p>" * 9
    manual = (
        f"<div class=navheader>Prev Home Next</div>{words}<div class='sidebar'>A box</div><div class=navfooter>Up</div>"
    )
    marked = (
        f"<div class=entry-content>{words}</div><div><p>{'Elsewhere, more. ' * 30}</div><div id=comments>{words}</div>"
    )
    found = [main_text(f"<title>t</title><body>{page}".encode(), "text/html") for page in (manual, marked)]

    assert [None if one is None else set(one.text.split()) for one in found] == [
        {"One", "sentence,", "and", "another", "one.", "A", "box"}, {"One", "sentence,", "and", "another", "one."}
    ]  # fmt: skip
    assert found[1] is not None
    assert found[1].boilerplate > 0.5


@needs_resiliparse
def test_a_mark_around_next_to_nothing_is_not_believed() -> None:
    """The first words before a wall are not the article that stands elsewhere."""
    found = main_text(f"<body><div class=entry-content>Hi</div><main>{ARTICLE}</main>".encode(), "text/html")

    assert found is not None
    assert "Sentences of an article" in found.text


@needs_resiliparse
@pytest.mark.parametrize("frame", ["", f"<nav>{'<p>Elsewhere, and more. ' * 20}</nav>"])
def test_lists_of_a_page_without_a_frame_are_its_article(frame: str) -> None:
    """Resiliparse takes them for navigation; where something stands around them that is not asked."""
    points = "".join(f"<li><p>{'A point, with <a href=/b>a link</a> in it. ' * 9}</p></li>" for _ in range(20))
    page = f"<title>t</title><body><h1>Notes</h1><p>{'Words before. ' * 20}</p><ul>{points}</ul>{frame}"
    found = main_text(page.encode(), "text/html")

    assert found is not None
    assert found.text.count("A point") == (0 if frame else 180)


_PIECES = [
    *(
        "<title>",
        "</title>",
        "</TITLE >",
        "<title>A &amp; b",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<svg>",
        "</svg>",
    ),
    *("<head>", "</head>", "<body>", "<template>", "</template>", "<noscript>", "</titlex>", "<frameset>", "x ", "<b>"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=8))
@settings(max_examples=200)
def test_a_title_is_that_of_the_whole_page(pieces: list[str]) -> None:
    """Whatever stands before, in and behind it."""
    body = "".join(pieces).encode()
    whole = read_page(body, url="http://h.test/", content_type="text/html; charset=utf-8")
    assert read_title(body, content_type="text/html; charset=utf-8") == whole.title
