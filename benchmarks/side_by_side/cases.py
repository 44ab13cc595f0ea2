"""The same pages for every crawler: what is served, how, and how far a crawl of it goes."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.real_pages.site import DOMAIN, RealSite, free_port, lay_handbook, lay_manual, site_of

_CORPUS_HOSTS = 100  # names that the pages of an archive are dealt to


class Case(NamedTuple):
    """One column of the comparison."""

    letter: str
    what: str
    site: RealSite
    depth: int = 0  # how far from the seeds links are followed; 0 for no bound
    certificate: Path | None = None  # served over TLS, a new connection a page


def small_pages(folder: Path) -> Case:
    """(a) PostgreSQL's manual under 40 host names: some 14 KB a page, many links."""
    port = free_port()
    return Case("a", "small pages: PostgreSQL's manual", site_of(folder, port, lay_manual(folder / "root", port)))


def handbook(folder: Path) -> Case:
    """(b) without an archive of pages: the Debian handbook, a host a language."""
    return Case("b", "the Debian handbook", site_of(folder, free_port(), lay_handbook(folder / "root", None)))


def corpus(folder: Path, archive: Path) -> Case:
    """(b) pages of the web from a tar archive, each one link away from the front page of its host.

    Their own links lead nowhere here, so that a crawl goes one step deep; they are all read and judged, though.
    """
    unpacked = folder / "unpacked"
    unpacked.mkdir(parents=True)
    subprocess.run(["tar", "--auto-compress", "-xf", archive, "-C", unpacked], check=True)
    fronts: dict[str, list[str]] = {}
    for page in sorted(unpacked.rglob("*.html")):
        host = f"web{zlib.crc32(page.name.encode()) % _CORPUS_HOSTS:02d}.{DOMAIN}"
        (folder / "root" / host).mkdir(parents=True, exist_ok=True)
        shutil.move(page, folder / "root" / host / page.name)
        fronts.setdefault(host, []).append(page.name)
    for host, names in fronts.items():
        links = "".join(f'<li><a href="{name}">{name}</a></li>' for name in names)
        (folder / "root" / host / "front.html").write_text(f"<!doctype html><title>{host}</title><ul>{links}</ul>")
    site = site_of(folder, free_port(), [f"{host}/front.html" for host in sorted(fronts)])
    return Case("b", "pages of the web", site, depth=1)


def over_tls(folder: Path) -> Case:
    """(c) the pages of (a) over TLS with a new connection for each."""
    port = free_port()
    site = site_of(folder, port, lay_manual(folder / "root", port, "https"), "https")
    certificate = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "2", "-subj", f"/CN={DOMAIN}", "-addext", f"subjectAltName=DNS:*.{DOMAIN}"]
    subprocess.run(
        [*command, *names, "-keyout", folder / "key.pem", "-out", certificate], check=True, capture_output=True
    )
    certificate.write_bytes(certificate.read_bytes() + (folder / "key.pem").read_bytes())
    return Case("c", "the same over TLS, a connection a page", site, certificate=certificate)


def all_cases(folder: Path, archive: Path | None) -> list[Callable[[], Case]]:
    """Each case laid out when it is called for, in a folder of its own."""
    return [
        lambda: small_pages(folder / "a"),
        lambda: corpus(folder / "b", archive) if archive else handbook(folder / "b"),
        lambda: over_tls(folder / "c"),
    ]
