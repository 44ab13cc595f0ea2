"""A crawl that signs its requests, judged by what its servers were sent; and what it is told when it cannot."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from scrapy.settings import Settings

from crawlerproject.crawl.start.setting_limits import check_directory, check_signing
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.identity_checks import read_request
from crawlerproject.rules.identity.key_ring import DIRECTORY_TYPE
from crawlerproject.rules.identity.message_signatures import proofs
from crawlerproject.settings import OURS
from crawlerproject.stores.logs.request_log import read_log
from crawlerproject.stores.operator_files.key_file import read_keys, write_keys
from tests.commands.crawled import scrapy
from tests.stores.redis_servers import redis_server
from tests.web import zygote
from tests.web.running import PROJECT
from tests.web.signed_sites import ADDRESS, NONCE, Asked, SignedSites, signed_sites
from tests.web.waiting import busyness

SECONDS = 60.0


class Crawled(NamedTuple):
    """A finished crawl."""

    sites: SignedSites
    folder: Path
    asked: list[Asked]
    said: str


def options(sites: SignedSites, folder: Path, **more: str) -> list[str]:
    """Settings of a crawl."""
    given = sites.settings() | {"CRAWL_DIR": str(folder)} | more
    return [part for name, value in given.items() for part in ("-s", f"{name}={value}")]


def crawl(sites: SignedSites, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    command = [sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={sites.seeds}", "-a", "scope=any"]
    return zygote.run([*command, *options(sites, folder, **more)], timeout=SECONDS, check=False)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """All sites, without a browser (``python -m benchmarks.web_bot_auth`` has one)."""
    folder = tmp_path_factory.mktemp("signed")
    with signed_sites(folder / "web") as sites:
        ended = crawl(sites, folder / "crawl", COMMIT_SECONDS="0.3")
        assert ended.returncode == 0, ended.stderr[-3000:]
        yield Crawled(sites, folder / "crawl", list(sites.web.asked), ended.stdout + ended.stderr)


def flaw(sites: SignedSites, asked: Asked) -> str:
    """What a verifier would have against a request."""
    found = proofs(read_request(asked.text, asked.url), read_keys(sites.key_file).public_keys())
    return found[0].flaw or found[0].at(time.time(), 0) if found else "unsigned"


def test_every_request_is_signed_but_to_the_excepted(crawled: Crawled) -> None:
    """robots.txt, pages, images, the retry, the redirect's target, each by its own authority."""
    kinds = {(asked.site, asked.path) for asked in crawled.asked}
    excepted = [asked for asked in crawled.asked if asked.site == "excepted.test"]
    others = [asked for asked in crawled.asked if asked.site != "excepted.test"]

    assert {("pages.test", path) for path in ("/robots.txt", "/", "/1", "/image.png", "/busy", "/moved")} <= kinds
    assert {("other.test", "/robots.txt"), ("other.test", "/")} <= kinds
    assert {("secure.test", path) for path in ("/robots.txt", "/", "/1", "/2?of=it")} <= kinds  # over TLS
    assert {asked.status for asked in crawled.asked if asked.path == "/busy"} == {503, 200}
    assert {(asked.url, flaw(crawled.sites, asked)) for asked in others if flaw(crawled.sites, asked)} == set()
    assert excepted != []
    assert {flaw(crawled.sites, asked) for asked in excepted} == {"unsigned"}


def by_proxy(sites: SignedSites, folder: Path) -> None:
    """A crawl whose proxy is the sites' own server."""
    place = f"http://{ADDRESS}:{sites.web.server_address[1]}"
    ran(sites, crawl_of_pages(sites, folder), http_proxy=place, no_proxy="localhost")


def by_local_fleet(sites: SignedSites, folder: Path) -> None:
    """Two workers on this machine."""
    command = crawl_of_pages(sites, folder)
    at = command.index("crawl")
    ran(sites, [*command[:at], "fleet", "--workers", "2", *command[at + 2 :]])


def by_redis_fleet(sites: SignedSites, folder: Path) -> None:
    """Two workers over Redis."""
    with redis_server(folder.with_suffix(".redis")) as server:
        shared = ("-s", f"STATE_URL={server.url}", "-s")
        ran(sites, *([*crawl_of_pages(sites, folder), *shared, f"FLEET_WORKER=w{number}"] for number in (1, 2)))


def by_addon(sites: SignedSites, folder: Path) -> None:
    """A spider of another project, with the add-on alone."""
    (folder / "own").mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = own.settings\n")
    (folder / "own" / "__init__.py").touch()
    spider = f"class Plain(scrapy.Spider):\n    name = 'plain'\n    start_urls = [{sites.url('pages.test')!r}]\n"
    parse = "    def parse(self, response):\n        yield from response.follow_all(css='a')\n"
    (folder / "own" / "spiders.py").write_text(f"import scrapy\n{spider}{parse}")
    lines = ["SPIDER_MODULES = ['own.spiders']", "ADDONS = {'crawlerproject.addon.PoliteCrawl': 100}"]
    (folder / "own" / "settings.py").write_text("\n".join(lines))
    given = [part for name, value in sites.settings().items() for part in ("-s", f"{name}={value}")]
    ran(sites, [sys.executable, "-m", "scrapy", "crawl", "plain", *given], cwd=folder, PYTHONPATH=f"{folder}:{PROJECT}")


def crawl_of_pages(sites: SignedSites, folder: Path) -> list[str]:
    """The command of one crawl of pages.test."""
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "crawl",
        "web",
        "-a",
        f"seeds={sites.url('pages.test')}",
        "-a",
        "scope=any",
    ]
    return [*command, *options(sites, folder, COMMIT_SECONDS="0.3")]


def ran(sites: SignedSites, *commands: list[str], cwd: Path = PROJECT, **environment: str) -> None:
    """Each beside the others, to its end."""
    given = zygote.direct(**environment)
    if cwd != PROJECT:
        given.pop("SCRAPY_SETTINGS_MODULE", None)
    started = [
        subprocess.Popen(each, cwd=cwd, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for each in commands
    ]
    for process in started:
        said, _ = process.communicate(timeout=SECONDS * busyness())
        assert process.returncode == 0, said.decode()[-3000:]


@pytest.mark.parametrize("way", [by_proxy, by_local_fleet, by_redis_fleet, by_addon])
def test_every_way_to_crawl_signs(crawled: Crawled, tmp_path: Path, way: Callable[[SignedSites, Path], None]) -> None:
    """Pages, robots.txt and what is tried again, with the one key file, which nothing that is written holds."""
    sites, before = crawled.sites, len(crawled.sites.web.asked)
    way(sites, tmp_path / "crawl")
    asked = sites.web.asked[before:]

    assert {"/robots.txt", "/", "/1", "/busy"} <= {each.path for each in asked if each.site == "pages.test"}
    assert {(each.url, flaw(sites, each)) for each in asked if flaw(sites, each)} == set()
    secret = json.loads(sites.key_file.read_text())["keys"][0]["d"].encode()
    assert not any(secret in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_what_a_server_asks_for_it_gets_once_and_from_then_on(crawled: Crawled) -> None:
    """A refused robots.txt is no missing one; the pages behind it come at the first try."""
    answers = [(asked.path, asked.status) for asked in crawled.asked if asked.site == "asks.test"]

    assert answers[:2] == [("/robots.txt", 403), ("/robots.txt", 200)]
    assert {("/", 200), ("/1", 200), ("/2?of=it", 200)} <= set(answers[2:])
    assert {status for _, status in answers[2:]} == {200}


def test_a_nonce_is_sent_with_the_next_request_alone(crawled: Crawled) -> None:
    """The one after the rest that each 429 asks for."""
    asked = [asked for asked in crawled.asked if asked.site == "fresh.test"]

    assert [one.status for one in asked if one.path == "/1"][-1] == 200
    assert [NONCE in one.text for one in asked] == [False, *(one.status == 429 for one in asked[:-1])]


def test_archive_and_log_have_what_was_sent(crawled: Crawled, tmp_path: Path) -> None:
    """Each request with its signature, and no private key anywhere in the crawl's folder, its log or a backup."""
    archived = b"".join(gzip.decompress(path.read_bytes()) for path in (crawled.folder / "warc").glob("*.gz"))
    secret = json.loads(crawled.sites.key_file.read_text())["keys"][0]["d"].encode()
    backed_up = scrapy("state", "backup", str(tmp_path / "backup"), *options(crawled.sites, crawled.folder))
    assert backed_up.returncode == 0, backed_up.stderr
    folders = crawled.folder, tmp_path / "backup"
    files = b"".join(path.read_bytes() for each in folders for path in each.rglob("*") if path.is_file())

    for asked in crawled.asked:
        signature = dict(asked.headers).get("Signature", "")
        assert signature.encode() in archived
    assert [row["status"] for row in read_log(crawled.folder / "log") if row["url"].endswith("asks.test")] == []
    assert len(list(read_log(crawled.folder / "log"))) == len(crawled.asked)
    assert secret not in files + archived + crawled.said.encode()
    assert "Requests are signed with the key " in crawled.said


def test_a_pasted_request_is_known_again(crawled: Crawled, tmp_path: Path) -> None:
    """By its signature and its line of the log; a changed one, and one that was replayed, are not."""
    asked = next(one for one in crawled.asked if one.path == "/1" and one.site == "pages.test")
    pasted = tmp_path / "headers.txt"
    given = options(crawled.sites, crawled.folder)

    def verified(text: str) -> tuple[int, str]:
        pasted.write_text(text)
        done = scrapy("verify-request", str(pasted), "--url", crawled.sites.url("pages.test", asked.path), *given)
        return done.returncode, done.stdout + done.stderr

    status, said = verified(asked.text)
    assert (status, "It was ours: signed with our key, and in the request log" in said) == (0, True), said
    assert asked.url in said
    status, said = verified(asked.text.replace("GET /1 ", "GET /never "))
    assert (status, "no request log here has such a request" in said) == (1, True), said
    status, said = verified(asked.text.replace("created=1", "created=2"))
    assert (status, "it does not fit this request" in said) == (1, True), said
    status, said = verified("GET /1 HTTP/1.1\nHost: x.test\n")
    assert (status, "It has no signature of a crawler." in said) == (1, True), said
    letter = scrapy("reply", "pages.test", "--request", str(pasted), *given).stdout
    assert "The request that you sent us was not ours. It has no signature of a crawler." in letter
    pasted.write_text(asked.text)
    letter = scrapy("reply", "pages.test", "--request", str(pasted), *given).stdout
    assert "The request that you sent us was ours: it is signed with our key, and in our request log" in letter


def test_a_sites_owner_asks_the_crawlers_own_directory(crawled: Crawled, tmp_path: Path) -> None:
    """Without any key: the one that the request names has it, or has not."""
    asked = next(one for one in crawled.asked if one.path == "/1" and one.site == "pages.test")
    pasted = tmp_path / "headers.txt"

    def verified(text: str, **given: str) -> tuple[int, str]:
        pasted.write_text(text)
        more = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
        url = crawled.sites.url("pages.test", asked.path)
        done = scrapy("verify-request", str(pasted), "--url", url, *more, folder=tmp_path)
        return done.returncode, done.stdout + done.stderr

    trusted = {"FETCH_CA_FILE": str(crawled.sites.ca_file)}
    status, said = verified(asked.text, **trusted)
    assert (status, "It was signed with a key that https://" in said) == (0, True), said
    status, said = verified(asked.text.replace("GET /1 ", "GET /2 ").replace("created=1", "created=2"), **trusted)
    assert (status, "The signature is not by a key that https://" in said) == (1, True), said
    status, said = verified(asked.text)
    assert (status, "the signature cannot be checked" in said) == (2, True), said


def doctored(sites: SignedSites, **more: str) -> str:
    """What ``scrapy doctor`` says of the keys."""
    given = {"IDENTITY_KEY_FILE": sites.key_file, "FETCH_CA_FILE": sites.ca_file} | more
    said = scrapy("doctor", *(part for name, value in given.items() for part in ("-s", f"{name}={value}"))).stdout
    return "\n".join(line for line in said.splitlines() if "  keys: " in line)


def test_a_directory_that_lacks_the_key_stops_the_start(tmp_path: Path) -> None:
    """As do a clock that is off, and headers of the project's; one sentence each, before any request."""
    with signed_sites(tmp_path / "web") as sites:
        public, good = sites.folder / "public", sites.directory.answer
        (public / "_headers").rename(public / "aside")
        (public / "_headers").write_text("")
        ended = crawl(sites, tmp_path / "crawl")
        assert ended.returncode == 2
        assert "is answered with status 404; publish the key directory there." in ended.stderr
        (public / "aside").rename(public / "_headers")

        def refused(**more: str) -> str:
            settings = Settings({**OURS, **sites.settings(), **more})
            with pytest.raises(OperatorError) as error:
                check_signing(settings)
                check_directory(settings)
            return str(error.value)

        other = sites.folder / "other.json"
        made = ["identity", "init", f"https://localhost:{sites.directory.server_address[1]}", str(tmp_path / "p")]
        assert scrapy(*made, "-s", f"IDENTITY_KEY_FILE={other}").returncode == 0
        assert "lacks the key" in refused(IDENTITY_KEY_FILE=str(other))
        checked = scrapy(
            "identity", "check", "-s", f"IDENTITY_KEY_FILE={other}", "-s", f"FETCH_CA_FILE={sites.ca_file}"
        )
        assert (checked.returncode, "lacks the key" in checked.stderr) == (1, True)
        assert "lacks the key" in doctored(sites, IDENTITY_KEY_FILE=str(other))

        sites.directory.answer = lambda *given: (*good(*given)[:2], (*good(*given)[2], ("Age", "200")), good(*given)[3])
        assert re.match(r"This machine's clock is (19\d|200|201) seconds behind", refused())
        sites.directory.answer = lambda *given: (
            *good(*given)[:2],
            (("Content-Type", DIRECTORY_TYPE),),
            good(*given)[3],
        )
        assert "MEND  keys: Its answer is not signed by its keys" in doctored(sites)
        sites.directory.answer = good
        assert doctored(sites).startswith("good  keys: ")
        key = ("-s", f"IDENTITY_KEY_FILE={sites.key_file}", "-s", f"FETCH_CA_FILE={sites.ca_file}")
        checked = scrapy("identity", "check", *key)
        assert (checked.returncode, checked.stderr) == (0, "")
        assert "sites can verify who asks" in checked.stdout
        headers = '{"Signature-Agent": "x"}'
        assert "DEFAULT_REQUEST_HEADERS sets Signature-Agent" in refused(DEFAULT_REQUEST_HEADERS=headers)
        assert sites.web.asked == []


def test_keys_are_made_once_and_rotated(tmp_path: Path) -> None:
    """For their owner alone; the next key is published at once and signs in a day; foreign lines of _headers stay."""
    path, public = tmp_path / "keys" / "identity.json", tmp_path / "public"
    key = ("-s", f"IDENTITY_KEY_FILE={path}")
    public.mkdir()
    (public / "_headers").write_text("/other\n  X-Own: 1\n")
    old = os.umask(0)
    try:
        made = scrapy("identity", "init", "https://bot.example", str(public), *key)
    finally:
        os.umask(old)

    assert (made.returncode, path.stat().st_mode & 0o777) == (0, 0o600)
    assert "d" not in json.loads((public / ".well-known/http-message-signatures-directory").read_bytes())["keys"][0]
    again = scrapy("identity", "init", "https://bot.example", str(public), *key)
    assert (again.returncode, "run scrapy identity rotate" in again.stderr) == (2, True)
    assert (
        scrapy("identity", "init", "http://bot.example", str(public), "-s", f"IDENTITY_KEY_FILE={path}2").returncode
        == 2
    )
    first = read_keys(path).signing(time.time()).keyid
    assert scrapy("identity", "rotate", str(public), *key).returncode == 0
    ring = read_keys(path)
    assert ring.signing(time.time()).keyid == first
    listed = json.loads((public / ".well-known/http-message-signatures-directory").read_bytes())["keys"]
    assert [each["kid"] for each in listed] == [each.keyid for each in ring.keys]
    assert (public / "_headers").read_text().startswith("/other\n  X-Own: 1\n/.well-known/")
    assert scrapy("identity", "rotate", str(public), *key).returncode == 2
    assert scrapy("identity", "rotate", str(public), "--now", *key).returncode == 0
    ring = read_keys(path)
    assert ring.signing(time.time()).keyid == ring.keys[-1].keyid
    write_keys(path, ring._replace(keys=(*ring.keys[:-1], ring.keys[-1]._replace(d=ring.keys[0].d))))
    checked = scrapy("identity", "check", *key)
    assert (checked.returncode, "its parts belong to different keys" in checked.stderr) == (2, True)
