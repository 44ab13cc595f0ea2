"""rules/urls: the fetch form is WHATWG's, the key is a stable guess at identity, nothing else is raised."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh3_64_digest, xxh3_128_digest

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import Base, UrlRefused, _key_text, encode_query, host_key, host_name, origin, parse

CASES = Path(__file__).parents[2] / "cases" / "urls.tsv"


def _cases(*kinds: str) -> list[tuple[str, str, str, str]]:
    lines = [line for line in CASES.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    rows = [line.split("\t") for line in lines]
    return [(row[0], *(json.loads(cell) for cell in row[1:4])) for row in rows if row[0] in kinds]


def _fetch_form(base: str, text: str) -> str:
    if base:
        address, target = Base(base).join(text), Base(base).target(text)
        assert target == (None if address is None else address.url)
        return target or ""
    try:
        return parse(text).url
    except UrlRefused:
        return ""


@pytest.mark.parametrize(("kind", "base", "text", "expected"), _cases("resolve"))
def test_resolves_as_browsers_do(kind: str, base: str, text: str, expected: str) -> None:
    """The fetch form of each case, or its refusal."""
    assert _fetch_form(base, text) == expected


@pytest.mark.parametrize(("kind", "one", "other", "_"), _cases("same", "apart"))
def test_keys_tell_pages_apart(kind: str, one: str, other: str, _: str) -> None:
    """Two spellings of one page share a key; two pages do not."""
    assert (parse(one).key == parse(other).key) == (kind == "same")


@pytest.mark.parametrize(("kind", "_", "text", "expected"), _cases("key"))
def test_key(kind: str, _: str, text: str, expected: str) -> None:
    """The key of each case is the digest of the expected text, behind that of its host."""
    address = parse(text)
    assert address.key == xxh3_64_digest(address.host.encode()) + xxh3_128_digest(expected.encode())


_PIECES = (
    *("%", "%4", "1", "41", "%2e", "%7E", "%7e", "a", "/", "//", "?", "&", "=", "#", "@", ":", ";", ".", "..", "\\"),
    *("utm_x=1", "sid=", "0123456789abcdef", ";jsessionid=", "/(S(abcdefghijklmnopqrstuvwx))", "ü", "中", "\ud800"),
    *("CFID=1", "CFTOKEN=12345678", "xn--a", "[", "]", "\x00", "\n", " ", "|"),
)
_URLISH = st.lists(st.sampled_from(_PIECES), max_size=16).map("".join)


@given(_URLISH)
@example("/(S(abcdefghijklmnopqrstuvwx))/(S(abcdefghijklmnopqrstuvwx))/")
@example("?a=%4%31%%34%31")
def test_laws(tail: str) -> None:
    """A fetch form parses to itself, and what its key is made of is in normal form."""
    try:
        address = parse(f"http://example.org/{tail}")
    except UrlRefused:
        return
    assert parse(address.url) == address
    key = _key_text(address.url)
    assert _key_text(key) == key


@given(st.one_of(st.text(), _URLISH, _URLISH.map("http://".__add__)))
def test_nothing_but_a_refusal_is_raised(text: str) -> None:
    """Any text is an address or refused, alone and as a link."""
    try:
        assert len(parse(text).key) == 24
    except UrlRefused as refused:
        assert refused.reason in (Reason.INVALID_URL, Reason.SCHEME)
    Base("http://example.org/a", "cp1252").join(text)
    Base(text).join("x")


def test_refusals_have_the_right_word() -> None:
    """Another scheme is not a broken URL."""
    for text, reason in (
        ("mailto:a@b.c", Reason.SCHEME),
        ("example.org", Reason.INVALID_URL),
        ("", Reason.INVALID_URL),
    ):
        with pytest.raises(UrlRefused) as refused:
            parse(text)
        assert refused.value.reason is reason


def test_keys_of_a_host_share_eight_bytes() -> None:
    """The host is the first part of the key, so that a host's pages lie together on disk."""
    one, other = parse("http://example.org/a"), parse("https://EXAMPLE.org./b")
    assert one.key[:8] == other.key[:8]
    assert one.key[8:] != other.key[8:]


def test_host_and_origin() -> None:
    """The default port is dropped, any other is part of the host; brackets and origin's scheme stay."""
    assert host_key("https://Example.org:443/") == "example.org"
    assert host_key("https://example.org:80/") == "example.org:80"
    assert host_key("http://example.org.:8080/") == "example.org:8080"
    assert host_key("http://[::1]:80/") == "[::1]"
    assert origin("https://u:p@example.org:8443/x?y#z") == "https://example.org:8443"


def _root_dotted(url: str) -> str:
    """The same URL with a root dot behind its host's name."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    name, colon, port = host.partition(":")
    return f"{scheme}://{name}.{colon}{port}{slash}{path}"


def test_a_host_has_one_key_however_its_url_is_written() -> None:
    """The key of every form of every case, with and without a root dot, is the address's own host."""
    seen = 0
    for kind, base, text, expected in _cases("resolve", "same", "apart", "key"):
        for url in (base, text, expected):
            forms = [url, _root_dotted(url)] if "://" in url and "[" not in url else [url]
            for form in forms:
                try:
                    address = parse(form)
                except UrlRefused:
                    continue
                seen += 1
                assert host_key(form) == host_key(address.url) == address.host, (kind, form)
                assert not address.host.partition(":")[0].endswith(".")
    assert seen > 400


@given(st.sampled_from(["http", "https"]), st.from_regex(r"[a-z0-9-]{1,9}(\.[a-z0-9-]{1,9}){0,3}\.?", fullmatch=True))
@example("http", "intranet.")
def test_a_root_dot_makes_no_other_host(scheme: str, name: str) -> None:
    """With a port and without one, the key is that of the name without its root dot."""
    for port in ("", ":80", ":443", ":8080"):
        url = f"{scheme}://{name}{port}/a"
        try:
            host = parse(url).host
        except UrlRefused:
            continue
        assert host_key(url) == host == parse(f"{scheme}://{name.removesuffix('.')}{port}/a").host
    assert parse("http://bücher.example/").host == "xn--bcher-kva.example"


def test_query_is_written_in_the_pages_encoding() -> None:
    """The path is UTF-8 always, the query in the page's encoding, what it lacks as a character reference."""
    for encoding, href, url in (
        ("windows-1251", "/ж?q=ж中#ж", "/%D0%B6?q=%E6%26%2320013%3B"),
        ("cp1251", " ?ж\t\n \t", "/?%E6"),  # a label; what the parser of addresses drops is not written
        ("windows-1251", "?ж #", "/?%E6%20"),
        ("euc-jp", "?q=①<", "/?q=%AD%A1%3C"),
        ("iso-2022-jp", "?q=あ", "/?q=%1B$B$%22%1B(B"),
        ("utf-16le", "?ж", "/?%D0%B6"),
        ("replacement", "?ж", "/?%D0%B6"),
        ("klingon", "?ж", "/?%D0%B6"),
    ):
        address = Base("http://example.org/", encoding).join(href)
        assert address is not None
        assert address.url == "http://example.org" + url
    assert encode_query("/ж#?ж", "windows-1251") == "/ж#?ж"


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("http://STRAẞE.de/", "xn--strae-oqa.de"),  # UTS 46 since revision 31: as ß, no longer as ss
        ("//stra%E1%ba%9Ee.de/%C3%A9", "xn--strae-oqa.de"),
        ("http://straße.de/", "xn--strae-oqa.de"),
        ("http://strasse.de/ẞ", "strasse.de"),
        ("http://Ⴀ.example/", "xn--rkj.example"),  # refused by Ada's older tables
        ("http://%E1%82%A0.example/", "xn--rkj.example"),
        ("http://ӏӀ.example/", "xn--s5aa.example"),
        ("http://xn--a/", "xn--a"),
        ("http://٠١.example/", None),  # UTS 46, CheckBidi: digits alone
        ("http://a\u00adb.example/", "ab.example"),
        ("http://bücher.example/ä?ö", "xn--bcher-kva.example"),
        ("ẞ/ß", "page.strasse.de"),
        ("http://a\ud800.example/", None),
        ("http://a%2fb.example/é", None),
    ],
)
def test_hosts_are_those_of_browsers(written: str, host: str | None) -> None:
    """By an address of its own and on a page, also one of the host that the older parser makes of it."""
    for page in ("http://page.strasse.de/a/", "https://strasse.de/", "http://xn--rkj.example/", "http://xn--a/"):
        address = Base(page).join(written)
        wanted = Base(page).join(".") if host == "page.strasse.de" else None
        assert (address and address.host) == (wanted.host if wanted else host)
    if ":" in written:
        try:
            assert parse(written).host == host
        except UrlRefused:
            assert host is None


def test_what_an_old_crawl_knows_keeps_its_key() -> None:
    """A row of a crawl that read ẞ as ss has an ASCII address, which means what it meant."""
    assert parse("http://strasse.de/a").url == "http://strasse.de/a"
    assert parse("http://xn--8hb/").host == "xn--8hb"


def test_a_base_only_the_second_parser_knows() -> None:
    """A page on a host with an odd xn-- label still has links."""
    address = Base("http://xn--a/dir/page").join("other")
    assert address is not None
    assert address.url == "http://xn--a/dir/other"


@given(st.sampled_from(["a", "b.html", "b?x=/y/", "b?x#z/", ""]), st.text("ab/.?#: \n%é\\", max_size=6))
def test_a_link_means_the_same_on_every_page_of_a_folder(name: str, href: str) -> None:
    """What pages of one folder have found out for each other is what each would have found."""
    page = f"http://example.org/one/two/{name}"
    for other in ("", "c", "c?q=1"):
        Base(f"http://example.org/one/two/{other}").join(href)

    assert Base(page).join(href) == Base(page)._join(href)


_BASES = [
    "http://example.org/", "http://example.org/one/two", "https://example.org/one/?q=/x/", "http://example.org:81/one/",
    "http://b.example.org/one/two", "http://[::1]/one/", "http://xn--a/dir/page", "http://xn--bcher-kva.example/one/",
    "http://example.org/XN--/two", "http:////example.org/one/", "http://user@example.org/one/", "ftp://example.org/one/",
    "http://example.org/%7ea/b", "http://example.org/a;jsessionid=1234567890123456/b", "http://example.org/one#a/b",
    "http://example.org./one/", "http://example.org.:81/one/", "http://example..org/one/", "http://Example.org/one/",
    "http://example.org?a/b", "http://example.org", "mailto:someone", "http:\\\\example.org/one/", "no address", "",
]  # fmt: skip
_HREFS = st.one_of(
    st.text("ab/.?#: \n%é\\@", max_size=8),
    st.text("aB0/._~-", max_size=8),
    st.text("aB1/.?#:&=_", max_size=12),
    st.builds(
        "".join,
        st.tuples(
            st.sampled_from(["http://", "https://", "HTTP://", "http:", "http:/", "//", "/", "/\\", ""]),
            st.sampled_from(["", "example.org", "xn--a", "xn--a.b", "c.example", "user@example.org", "[::1]", "a b"]),
            st.text("ab/.?#: %é\\", max_size=5),
        ),
    ),
)


@given(_HREFS, st.permutations(_BASES))
def test_a_link_means_the_same_whoever_asked_before(href: str, pages: list[str]) -> None:
    """Absolute links are shared by all pages, those from the root by those of an origin, where that is the same."""
    for page in pages:
        base = Base(page)
        assert base.join(href) == base._join(href), page
        found = base._join(href)
        assert base.target(href) == (None if found is None else found.url), page


@pytest.mark.parametrize(
    ("url", "key", "name"),
    [
        ("http://Example.org/x", "example.org", "example.org"),
        ("https://example.org:443/", "example.org", "example.org"),
        ("http://example.org:443/", "example.org:443", "example.org"),
        ("http://u:p@example.org:8080/", "example.org:8080", "example.org"),
        ("http://[::1]:8080/", "[::1]:8080", "[::1]"),
        ("https://[::1]/", "[::1]", "[::1]"),
        ("http://intranet./", "intranet", "intranet"),
        ("https://example.org.:8443/x", "example.org:8443", "example.org"),
        ("ftp://Example.org.:2121/x", "example.org:2121", "example.org"),
        ("data:text/plain,x", "", ""),
        ("http://example.org:99999/", "", ""),
    ],
)
def test_host_key_and_name(url: str, key: str, name: str) -> None:
    """The key keeps an unusual port, the name never does."""
    assert host_key(url) == key
    assert host_name(key) == name
