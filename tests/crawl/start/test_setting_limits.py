"""Values that cannot go well, each found before the start and said in one sentence with the setting's name."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlerproject import settings as ours
from crawlerproject.config.settings_table import ALL, Kind
from crawlerproject.crawl.start.setting_limits import check_scrapys, check_values
from crawlerproject.errors import OperatorError
from tests.web.running import PROJECT


def settings(**given: object) -> Settings:
    """The project's settings, with these from a command line."""
    made = Settings()
    made.setmodule(ours, priority="project")
    made.set("NEVERCRAWL_FILE", str(PROJECT / "NeverCrawl.txt"), "project")
    for name, value in given.items():
        made.set(name, value, "cmdline")
    return made


def test_the_defaults_are_within_their_bounds() -> None:
    """A machine without /etc/hosts, or without a list of the operator's own, is no error."""
    check_values(settings())
    check_scrapys(settings())


# As on a command line, where everything is a string.
BEYOND = [
    ("WATCH_PORT", "99999", "WATCH_PORT is 99999; it must be from 0 to 65,535"),
    ("WEBSUB_PORT", "65536", "WEBSUB_PORT is 65536"),
    ("WATCH_PORT", "-1", "WATCH_PORT is '-1'; it must not be negative"),
    ("WATCH_PORT", "8080.5", "WATCH_PORT is '8080.5'; it must be a whole number"),
    ("FRONTIER_MAX_IN_FLIGHT", "1e3", "it must be a whole number"),
    ("FRONTIER_MAX_IN_FLIGHT", 2.5, "it must be a whole number"),
    ("SCOPE_MAX_DEPTH", "1" + 30 * "0", "SCOPE_MAX_DEPTH is"),
    ("LOG_KEEP_DAYS", "0", "LOG_KEEP_DAYS is 0; it must be above zero"),
    ("LOG_KEEP_DAYS", "1000000000", "LOG_KEEP_DAYS is 1000000000; it must be from 1 to 36,500"),
    ("RECRAWL_FULL_FETCH_SHARE", "7", "RECRAWL_FULL_FETCH_SHARE is 7; it must be from 0 to 1"),
    ("NEAR_DUPLICATE_BITS", "65", "NEAR_DUPLICATE_BITS is 65; it must be from 0 to 64"),
    ("FETCH_TIMEOUT_SECONDS", "1e300", "FETCH_TIMEOUT_SECONDS is 1e300"),
    ("COMMIT_SECONDS", "nan", "COMMIT_SECONDS is 'nan'"),
    ("COMMIT_SECONDS", "0", "COMMIT_SECONDS is 0; it must be above zero"),
    ("PACE_PER_IP", "perhaps", "PACE_PER_IP is 'perhaps'; use True or False"),
    ("NATIVE_READER", "always", "NATIVE_READER is 'always'; use one of auto, never"),
    ("WATCH_ADDRESS", "nonsense", "WATCH_ADDRESS is 'nonsense'; use an IP address"),
    ("FETCH_DNS_SERVERS", "dns.example.org", "FETCH_DNS_SERVERS has 'dns.example.org'"),
    ("WARC_PREFIX", "a/b", "WARC_PREFIX is 'a/b'"),
    ("HOST_PACE_FILE", "/nope", r"HOST_PACE_FILE /nope cannot be read \(No such file"),
    ("TRAP_ALLOW_FILE", "/nope", r"TRAP_ALLOW_FILE /nope cannot be read \(No such file"),
    ("NEVERCRAWL_FILE", "/nope", r"NEVERCRAWL_FILE /nope cannot be read \(No such file"),
    ("NEVERCRAWL_USER_FILE", "/nope", r"NEVERCRAWL_USER_FILE /nope cannot be read \(No such file"),
    ("FETCH_HOSTS_FILE", "/nope", r"FETCH_HOSTS_FILE /nope cannot be read \(No such file"),
    ("FETCH_CA_FILE", "/nope", "FETCH_CA_FILE '/nope' cannot be read as PEM"),
    ("FETCH_CA_FILE", "/etc/passwd", "FETCH_CA_FILE '/etc/passwd' cannot be read as PEM"),
    ("HOST_PACE_FILE", "/etc", r"HOST_PACE_FILE /etc cannot be read \(Is a directory"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BEYOND)
def test_what_is_out_of_range_is_one_sentence(name: str, value: object, sentence: str) -> None:
    """Numbers, addresses, and every setting that names a file."""
    with pytest.raises(OperatorError, match=sentence):
        check_values(settings(**{name: value}))


@pytest.mark.parametrize(
    "name", [name for name, setting in ALL.items() if setting.kind in (Kind.SWITCH, Kind.WHOLE, Kind.NUMBER)]
)
@pytest.mark.parametrize("value", ["soon", "", "1e400", "-inf"])
def test_no_number_is_taken_on_trust(name: str, value: str) -> None:
    """Every one of ours, booleans and those of earlier versions among them."""
    with pytest.raises(OperatorError, match=name):
        check_values(settings(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("LOG_LEVEL", "FOO", "LOG_LEVEL is 'FOO'; use DEBUG, INFO"),
        ("LOG_LEVEL", "10", "LOG_LEVEL is '10'"),  # Scrapy takes it for a name
        ("LOG_ENCODING", "klingon", "LOG_ENCODING is 'klingon'"),
        ("LOG_FORMAT", "%(nope", "LOG_FORMAT is"),
        ("LOG_FILE", "/nope/x.log", r"LOG_FILE /nope/x.log cannot be written \(No such file"),
        ("CLOSESPIDER_TIMEOUT", "abc", "CLOSESPIDER_TIMEOUT is 'abc'; it must be a number"),
        ("CLOSESPIDER_PAGECOUNT", "x", "CLOSESPIDER_PAGECOUNT is 'x'; it must be a whole number"),
        ("CONCURRENT_REQUESTS", "many", "CONCURRENT_REQUESTS is 'many'"),
        ("HTTPCACHE_ENABLED", "perhaps", "HTTPCACHE_ENABLED is 'perhaps'; use True or False"),
    ],
)
def test_scrapys_own_are_checked_as_well(name: str, value: str, sentence: str) -> None:
    """Before the log is opened with them, which ends in a traceback."""
    with pytest.raises(OperatorError, match=sentence):
        check_scrapys(settings(**{name: value}))


def test_scrapys_own_in_every_form_that_scrapy_takes() -> None:
    """Names and numbers of levels, fractions where it reads fractions."""
    good = {"LOG_LEVEL": "ERROR", "CLOSESPIDER_TIMEOUT": "0.5", "DOWNLOAD_DELAY": "1.5", "DEPTH_PRIORITY": "-1"}
    for name, value in {**good, "COOKIES_ENABLED": "0", "CONCURRENT_ITEMS": "3"}.items():
        check_scrapys(settings(**{name: value}))
    check_scrapys(settings(LOG_LEVEL=10))


def test_a_pace_that_a_line_fails_to_promise_stops_the_start(tmp_path: Path) -> None:
    """A misspelt word would leave the host with the pace of all others; the line is named."""
    paces = tmp_path / "paces.txt"
    paces.write_text("a.example delay_seconds=20\n\nb.example delay_second=20\nc.example quick\n")
    with pytest.raises(OperatorError, match=r"paces.txt, line 3: .*b.example.* which is not among .* \(2 such lines\)"):
        check_values(settings(HOST_PACE_FILE=str(paces)))
    paces.write_text("a.example delay_seconds=20\n")
    check_values(settings(HOST_PACE_FILE=str(paces)))


def test_authorities_of_ones_own_are_read(tmp_path: Path) -> None:
    """The system's own bundle is one."""
    system = ssl.get_default_verify_paths().cafile
    check_values(settings(FETCH_CA_FILE=system or ""))
