"""URLs refused by their look, hosts by the never-crawl list, and addresses that are not public."""

import tomllib
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.url.refused_urls import (
    BAD_PORTS,
    DERIVED,
    MISCHEL,
    SKIP_EXTENSIONS,
    AddressRules,
    Exclusion,
    bad_port,
    extensions_of,
    ipv4_number,
    own_ranges,
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


LIST = """\
# asked on 3 May
Example.org   # the whole domain
*.example.net
.example.edu.
bücher.example
192.0.2.7
2001:DB8::1

not a domain
http://example.com/
-bad-.example
straße.example
bücher.example/x
""".splitlines()


@pytest.mark.parametrize(
    ("host", "excluded"),
    [
        ("example.org", True),
        ("www.example.org", True),
        ("a.b.example.org", True),
        ("example.org.", True),
        ("notexample.org", False),
        ("example.org.evil.test", False),
        ("org", False),
        ("example.net", True),
        ("www.example.net", True),
        ("x.example.edu", True),
        ("xn--bcher-kva.example", True),
        ("www.xn--strae-oqa.example", True),  # as addresses are read, not by the standard of 2003
        ("strasse.example", False),
        ("192.0.2.7", True),
        ("192.0.2.70", False),
        ("[2001:db8::1]", True),
        ("example.com", False),
        ("", False),
        (".", False),
    ],
)
def test_excludes(host: str, excluded: bool) -> None:
    """A listed domain excludes itself and its subdomains, and nothing else."""
    exclusion, _ = Exclusion.parse(LIST)
    assert exclusion.excludes(host) is excluded
    assert (exclusion.line_of(host) is not None) is excluded


def test_bad_lines_are_named_by_number_and_skipped() -> None:
    """Each bad line is reported, the others hold."""
    exclusion, problems = Exclusion.parse(LIST)
    assert [problem.line for problem in problems] == [9, 10, 11, 13]
    assert len(exclusion) == 7


def test_line_of_names_the_line() -> None:
    """The operator learns which line excludes a host."""
    assert Exclusion.parse(LIST)[0].line_of("www.example.org") == 2


def test_a_file_with_a_byte_order_mark() -> None:
    """Editors that write one do not hide the first line."""
    assert Exclusion.parse(["\ufeffexample.org"])[0].excludes("example.org")


@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=30))
def test_any_lines_are_taken(lines: list[str], host: str) -> None:
    """No content of the file, and no host name, breaks it."""
    assert Exclusion.parse(lines)[0].excludes(host) in (True, False)


REFUSED = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.127.255.255",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2001:0:1::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "[::1]",
    "fec0::1",
    "100::1",
    "3fff::1",
    "localhost",
    "127.1",
    "0x7f.1",
    "2130706433",
    "999.1.1.1",
]
ALLOWED = [
    "8.8.8.8",
    "1.1.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "2606:4700::1",
    "2a00:1450::1",
]


@pytest.mark.parametrize("ip", [*REFUSED, "", " "])
def test_inside_addresses_are_refused(ip: str) -> None:
    """Private, loopback, link-local, metadata, multicast, reserved, hidden IPv4, and what is no address."""
    assert AddressRules().refuses(ip)


@pytest.mark.parametrize("ip", ALLOWED)
def test_public_addresses_are_allowed(ip: str) -> None:
    """The neighbours of refused blocks are public."""
    assert not AddressRules().refuses(ip)


def test_a_listed_network_is_allowed_and_only_it() -> None:
    """FETCH_ALLOW_NETWORKS opens exactly what it names, also in its IPv6-mapped spelling."""
    rules = AddressRules(["127.0.0.0/8", "fd00::/64"])
    assert not rules.refuses("127.0.0.1")
    assert not rules.refuses("::ffff:127.0.0.1")
    assert not rules.refuses("fd00::5")
    assert rules.refuses("10.0.0.1")
    assert rules.refuses("::1")
    assert rules.refuses("::ffff:10.0.0.1")
    assert rules.refuses("fd00:0:0:1::5")


def test_a_listed_nat64_prefix_opens_public_addresses_only() -> None:
    """On a network with DNS64 the inside stays shut."""
    rules = AddressRules(["64:ff9b::/96"])
    assert not rules.refuses("64:ff9b::808:808")
    assert rules.refuses("64:ff9b::7f00:1")
    assert rules.refuses("64:ff9b::a9fe:a9fe")


@pytest.mark.parametrize("block", ["10.0.0.0/33", "localhost", ""])
def test_a_bad_block_is_a_value_error(block: str) -> None:
    """The settings reader turns it into a sentence."""
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        AddressRules([block])


@given(st.ip_addresses(v=4))
def test_mapped_addresses_are_never_freer(ip: object) -> None:
    """Law: hiding an IPv4 address in IPv6 opens nothing."""
    rules = AddressRules()
    assert rules.refuses(f"::ffff:{ip}")


@given(st.from_regex(r"[0-9.]{1,16}", fullmatch=True) | st.ip_addresses(v=4).map(str))
def test_an_ipv4_address_is_what_the_standard_library_takes_for_one(text: str) -> None:
    """Four decimal octets without leading zeros."""
    try:
        number = int(IPv4Address(text))
    except ValueError:
        number = None
    assert ipv4_number(text) == number


@given(st.text(max_size=20))
def test_any_text_has_an_answer(text: str) -> None:
    """What is no address is refused, without an error."""
    assert AddressRules().refuses(text) or text.strip("[]").count(".") == 3 or ":" in text


def test_own_ranges_are_networks_each_once() -> None:
    """Addresses and blocks of both families, those of examples too."""
    found = own_ranges(["192.0.2.7", " 8.8.8.0/24", "2001:db8::/64", "2a00:1450::/32", "8.8.8.0/24"])
    assert list(map(str, found)) == ["192.0.2.7/32", "8.8.8.0/24", "2001:db8::/64", "2a00:1450::/32"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("8.8.8.8/24", "no network"),
        ("8.8.8", "no network"),
        ("", "no network"),
        ("bot.example", "no network"),
        ("10.1.2.0/24", "not public"),
        ("0.0.0.0/0", "not public"),
        ("192.0.0.0/16", "not public"),  # part of it is
        ("127.0.0.1", "not public"),
        ("fd00::/8", "not public"),
        ("::/0", "not public"),
        ("fe80::1", "not public"),
    ],
)
def test_ranges_that_say_nothing_are_refused(text: str, why: str) -> None:
    """What is no network, and what is private, wholly or in part."""
    with pytest.raises(ValueError, match=why):
        own_ranges(["8.8.8.0/24", text])
