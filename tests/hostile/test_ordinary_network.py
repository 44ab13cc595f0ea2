"""Ordinary troubles of names, addresses, certificates, proxies and processes, judged by the servers' own log."""

from __future__ import annotations

import datetime
import os
import signal
import ssl
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.crawled import scrapy
from tests.crawls.fleet.local_fleets import processes_of
from tests.fetch.servers import make_ca, server_tls
from tests.hostile.arena import PACE_SECONDS, SETTINGS, Arena, Asked, answer, arena
from tests.hostile.ledger import pays
from tests.web.running import crawl_command, start
from tests.web.waiting import wait_until

# An answer's end is noted when the server's thread has its turn.
_SEEN_SECONDS = 0.02
BOTH = {"FETCH_ALLOW_NETWORKS": "127.0.0.0/8,::1/128"}


def gaps(web: Arena, *hosts: str) -> list[float]:
    """From the end of one answer to the next request, of all these hosts together."""
    visits = sorted(visit for host in hosts for visit in web.of(host, robots=True))
    return [after.start - before.end for before, after in pairwise(visits)]


def test_a_host_with_both_kinds_of_address_has_one_pace(tmp_path: Path) -> None:
    """By IPv4 and IPv6 together, though another host keeps the first busy; one with IPv6 alone is crawled as well."""
    with arena(tmp_path, ipv6=True) as web:
        seeds = [web.innocent(pages=25, name=f"{kind}.test", address="127.66.4.4") for kind in ("both", "busy")]
        seeds += [web.innocent(pages=25, name="six.test"), web.innocent(pages=25)]
        hosts = (tmp_path / "hosts").read_text()
        kept = [line for line in hosts.splitlines() if "six.test" not in line]
        (tmp_path / "hosts").write_text("\n".join([*kept, "::1 both.test", "::1 six.test"]) + "\n")

        web.crawl(*seeds, settings={**BOTH, "PACE_IP_SECONDS": "0.1"})

        assert {visit.ip for visit in web.of("six.test")} == {"::1"}
        least = PACE_SECONDS - _SEEN_SECONDS
        pays("one host by IPv4 and IPv6", "the host", min(gaps(web, "both.test")), "s between requests", at_least=least)
        for name in ("both.test", "six.test"):
            found = len(set(web.paths(name)))
            pays("one host by IPv4 and IPv6", "its pages", found, "of 25 pages", at_least=25)
        web.assert_undisturbed(least=25)


def test_a_site_that_moves_in_mid_crawl_is_followed(tmp_path: Path) -> None:
    """Its old address takes no connection any more; what was on its way is asked for at the new one."""
    old, new = "127.66.5.1", "127.66.5.2"
    with arena(tmp_path) as web:
        seeds = [web.innocent(pages=30, name="moves.test", address=old), web.innocent(pages=30)]

        def halfway() -> bool:
            return len(web.of("moves.test")) >= 10

        web.crawl(*seeds, until=halfway)
        hosts = (tmp_path / "hosts").read_text().replace(old, new)
        (tmp_path / "hosts").write_text(hosts)
        web.crawl(*seeds)

        moved = [visit for visit in web.of("moves.test") if visit.ip == new]
        found = len(set(web.paths("moves.test")))
        assert len(moved) >= 15
        pays("an address that changes in mid-crawl", "the site", found, "of 30 pages", at_least=30)


def _without_intermediate(folder: Path, name: str, beside: str) -> tuple[ssl.SSLContext, str]:
    """A server that shows its own certificate alone, made by an intermediate authority of a root; the root's file.

    Nothing is the matter with the site ``beside``, which the root itself vouches for.
    """
    key, root, path = ca = make_ca(folder)
    middle = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test intermediate")]))
        .issuer_name(root.subject)
        .public_key(middle.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(middle.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    broken, whole = server_tls(folder, (middle, made, path), name), server_tls(folder, ca, beside)

    def choose(connection: ssl.SSLObject | ssl.SSLSocket, wanted: str | None, _: ssl.SSLContext) -> None:
        if wanted == beside:
            connection.context = whole

    broken.sni_callback = choose
    return broken, path


def test_a_chain_without_its_intermediate_is_no_chain(tmp_path: Path) -> None:
    """Nothing is asked over it and nobody fetches what is missing: the log and `why` say what is the matter."""
    tls, root = _without_intermediate(tmp_path, "chain.test", beside="whole.test")
    with arena(tmp_path, tls=tls) as web:
        names = "chain.test", "whole.test"
        seed, beside = (web.innocent(pages=3, name=name).replace("http://", "https://") for name in names)

        crawl = web.crawl(seed, beside, settings={"FETCH_CA_FILE": root, "HOST_MAX_FAILURES": "1"})

        assert len(web.of("whole.test")) == 3
        asked = len(web.of("chain.test", robots=True))
        pays("a chain without its intermediate", "the reader", asked, "requests over it", at_most=0)
    rows = [row for row in read_log(crawl.folder / "log") if row["host"].startswith("chain.test")]
    assert {(row["reason"], row["error"].partition(":")[0]) for row in rows} == {("tls-certificate", "unknown-issuer")}
    why = scrapy("why", seed, folder=crawl.folder).stdout
    assert "unknown-issuer" in why, why


def test_a_media_pipeline_through_a_proxy_keeps_the_pace(tmp_path: Path) -> None:
    """Files that a project's pipeline fetches beside the crawl: the site's pace and robots.txt hold for them too."""
    proxy = "127.68.3.1"

    def site(asked: Asked) -> bytes | None:
        path = urlsplit(asked.path).path  # a proxy is asked for a whole URL
        if path == "/robots.txt":
            return answer("User-agent: *\nDisallow: /private/\n", mime="text/plain")
        if path.endswith("/file"):
            return answer(b"\x89PNG" + path.encode(), mime="image/png")
        number = int(path.rpartition("/")[2] or 0)
        if number > 4:
            return None
        images = [*(f"/{number}-{place}/file" for place in range(4)), f"/private/{number}/file"]
        shown = "".join(f'<img src="{source}">' for source in images)
        return answer(f'<p>page {"x" * number} <a href="/{number + 1}">next</a>{shown}')

    with arena(tmp_path) as web:
        settings = {"SPIDER_MODULES": "tests.hostile.media", "FILES_STORE": str(tmp_path / "files")}

        crawl = web.crawl(web.site("media.test", site), settings=settings, http_proxy=f"http://{proxy}:{web.port}")

        asked = web.of("media.test", robots=True)
        assert {visit.ip for visit in asked} == {proxy}
        images = {urlsplit(visit.path).path for visit in asked if visit.path.endswith("/file")}
        assert len(images) == 5 * 4
        forbidden = sum("/private/" in visit.path for visit in asked)
        pays("a media pipeline through a proxy", "the site", forbidden, "forbidden files", at_most=0)
        least = PACE_SECONDS - _SEEN_SECONDS
        gap = min(gaps(web, "media.test"))
        pays("a media pipeline through a proxy", "the site", gap, "s between requests", at_least=least)
    assert "pace/guard_refused" not in crawl.log


# --- processes ----------------------------------------------------------------------------------


def _fleet(web: Arena, seeds: list[str], workers: int) -> list[str]:
    """The command of a fleet without a server."""
    (web.folder / "fleet.seeds.txt").write_text("\n".join(seeds) + "\n")
    given = {**SETTINGS, "COMMIT_SECONDS": "0.3", "FLEET_PARTITIONS": "8"}
    command = crawl_command(web.folder / "fleet.seeds.txt", web.folder / "fleet", web.folder / "hosts", given, "any")
    at = command.index("crawl")
    return [*command[:at], "fleet", *command[at + 2 :], "--workers", str(workers)]


@pytest.mark.long_attack
def test_two_supervisors_and_a_worker_that_is_killed_for_its_memory(tmp_path: Path) -> None:
    """The second supervisor, and a crawl, refuse to begin; a worker that the system kills thrice loses nothing."""
    sites, pages = [f"site{number}.test" for number in range(8)], 60
    with arena(tmp_path) as web:
        seeds = [web.innocent(pages=pages, name=name) for name in sites]
        command = _fleet(web, seeds, 2)
        log = tmp_path / "fleet.log"
        with log.open("wb") as output, (tmp_path / "second.log").open("wb") as second:
            fleet = start(command, output)
            wait_until(lambda: len(web.visits) > 40, "crawled", process=fleet, log=log)
            refused = [start(command, second), start(_alone(command), second)]
            statuses = [process.wait(60) for process in refused]
            killed = 0
            while killed < 3:
                before = len(web.visits)
                worker = processes_of(log)["worker-1"]
                os.kill(worker, signal.SIGKILL)  # as the kernel does when memory is short
                killed += 1
                wait_until(lambda: processes_of(log)["worker-1"] != worker, "again", process=fleet, log=log)  # noqa: B023
                wait_until(lambda: len(web.visits) > before + 10, "went on", process=fleet, log=log)  # noqa: B023
            ended = fleet.wait(240)

        said = (tmp_path / "second.log").read_text()
        assert ended == 0, log.read_text()[-3000:]
        assert statuses == [2, 2], said
        found = sum(len({visit.path for visit in web.of(name)}) for name in sites)
        # 20 links from the front page, each page naming the next five: all that is within SCOPE_MAX_DEPTH.
        pays("a worker that is killed thrice", "its sites", found, f"of {pages * 8} pages", at_least=pages * 8)
        again = sum(len(web.of(name)) for name in sites) - found
        pays("a worker that is killed thrice", "its sites", again, "pages asked for twice", at_most=3 * 8)
        closest = min(gap for name in sites for gap in gaps(web, name))
        least = PACE_SECONDS - _SEEN_SECONDS
        pays("two supervisors in one folder", "their sites", closest, "s between requests", at_least=least)


def _alone(command: list[str]) -> list[str]:
    """A crawl of one process in the fleet's folder."""
    at = command.index("fleet")
    return [*command[:at], "crawl", "web", *command[at + 1 : command.index("--workers")]]
