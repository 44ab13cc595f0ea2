"""The real pages as a web of 66 hosts: who serves which page, and the nginx that serves them.

The handbook has a folder per language: each becomes one host, its files untouched (a symbolic link). PostgreSQL's
manual is one folder: its pages are dealt to 40 hosts by a checksum of the name, and relative links to a page of
another host are made absolute, so that every page has exactly one address and every link still leads to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.web.judge import NGINX_FORMAT

PACKAGES = {
    "debian-handbook": Path("/usr/share/doc/debian-handbook/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
    "nginx-light": Path("/usr/sbin/nginx"),
}
DOMAIN = "real.test"
MANUAL_HOSTS = 40  # with the 26 languages: 66 hosts
_FIRST_IP = 0x020000  # 127.2.0.0
_MANUAL_FROM = 2000  # a run of fewer pages leaves the manual out: it is all or nothing
_LINK = re.compile(rb'(href=")([A-Za-z0-9_.-]+\.html)((?:#[^"]*)?")')
_START_SECONDS = 10.0


class RealSite(NamedTuple):
    """The folder tree of the hosts and what a crawler needs to find them."""

    folder: Path  # holds hosts, seeds.txt, root/<host>/...
    port: int
    hosts: dict[str, str]  # name to address
    seeds: list[str]

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def log(self) -> Path:
        return self.folder / "access.jsonl"


def install() -> None:
    """Install the packages that are missing (Debian, as root)."""
    missing = [name for name, path in PACKAGES.items() if not path.exists()]
    if missing:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], check=True, env=environment)
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
        subprocess.run(command, check=True, env=environment)


def build(folder: Path, pages: int | None) -> RealSite:
    """Lay out the hosts below ``folder``; ``pages`` limits how many (about), None is all."""
    port = free_port()
    root = folder / "root"
    manual = pages is None or pages >= _MANUAL_FROM
    fronts = lay_handbook(root, None if pages is None else pages - 1170 * manual)
    if manual:
        fronts += lay_manual(root, port)
    return site_of(folder, port, fronts)


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def site_of(folder: Path, port: int, fronts: list[str], scheme: str = "http") -> RealSite:
    """The site whose hosts lie in ``folder``/root; ``fronts`` are their first pages as HOST/FILE."""
    names = [front.split("/", 1)[0] for front in fronts]
    hosts = {name: f"127.{_FIRST_IP >> 16}.{number >> 8}.{number & 255}" for number, name in enumerate(names, 1)}
    seeds = [f"{scheme}://{front.replace('/', f':{port}/', 1)}" for front in fronts]
    (folder / "hosts").write_text("".join(f"{ip}\t{name}\n" for name, ip in hosts.items()))
    (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
    return RealSite(folder, port, hosts, seeds)


def lay_handbook(root: Path, pages: int | None) -> list[str]:
    """One host a language of the Debian handbook, about ``pages`` in all; the hosts' first pages."""
    root.mkdir(parents=True, exist_ok=True)
    fronts, left = [], float("inf") if pages is None else pages
    for language in sorted(PACKAGES["debian-handbook"].iterdir()):
        if left > 0 and (language / "index.html").exists():
            name = f"{language.name.lower()}.{DOMAIN}"
            (root / name).symlink_to(language)
            fronts.append(f"{name}/index.html")
            left -= len(list(language.glob("*.html")))
    return fronts


def lay_manual(root: Path, port: int, scheme: str = "http") -> list[str]:
    """PostgreSQL's manual dealt to its hosts; their first pages."""
    root.mkdir(parents=True, exist_ok=True)
    source = PACKAGES["postgresql-doc-15"]
    numbers = {path.name: zlib.crc32(path.name.encode()) % MANUAL_HOSTS for path in source.glob("*.html")}
    owners = {name: f"pg{number:02d}.{DOMAIN}" for name, number in numbers.items()}
    first: dict[str, str] = {}
    for name, host in sorted(owners.items()):
        (root / host).mkdir(exist_ok=True)
        (root / host / name).write_bytes(
            _absolute((source / name).read_bytes(), host, owners, f"{scheme}://%s:{port}/")
        )
        first.setdefault(host, f"{host}/{name}")
    return [first[host] for host in sorted(first)]


def _absolute(page: bytes, host: str, owners: dict[str, str], front: str) -> bytes:
    def link(found: re.Match[bytes]) -> bytes:
        owner = owners.get(found[2].decode(), host)
        start = b"" if owner == host else (front % owner).encode()
        return found[1] + start + found[2] + found[3]

    return _LINK.sub(link, page)


_CONFIG = """
{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
  include /etc/nginx/mime.types; default_type application/octet-stream; charset utf-8;
  log_format judged escape=json '{format}';
  access_log {folder}/access.jsonl judged;
  keepalive_requests 100000; sendfile on; tcp_nodelay on;
  client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
  server {{ listen {port} {tls} backlog=4096; root {folder}/root/$host; allow 127.0.0.0/8; deny all; {more}
    location = /ready {{ access_log off; alias {folder}/seeds.txt; }} }}
}}
"""


@contextlib.contextmanager
def nginx(site: RealSite, *, certificate: Path | None = None) -> Iterator[None]:
    """nginx with a configuration of its own, below the site's folder, ended on leaving.

    With a ``certificate`` (PEM, key included) it speaks TLS and closes the connection after each answer.
    """
    config = site.folder / "nginx.conf"
    tls, more = ("", "")
    if certificate is not None:
        tls, more = "ssl", f"ssl_certificate {certificate}; ssl_certificate_key {certificate}; keepalive_timeout 0;"
    given = {"folder": site.folder, "port": site.port, "user": nginx_user(), "tls": tls, "more": more}
    config.write_text(_CONFIG.format(format=NGINX_FORMAT, **given))
    with subprocess.Popen(nginx_command(config)) as process:
        try:
            _serving(site)
            yield
        finally:
            process.terminate()


def nginx_user() -> str:
    """The directive that says as whom nginx works.

    Started by root its workers would be another user, who sees nothing of a folder with mode 0700: all pages 403.
    """
    return "" if os.geteuid() else "user root;"


def nginx_command(config: Path) -> list[str]:
    """The command line of an nginx in the foreground, all of whose files are in its configuration's folder.

    It ends with the thread that starts it, also when that is killed: a benchmark that is begun again needs its port.
    """
    binary = shutil.which("nginx") or str(PACKAGES["nginx-light"])
    return [
        "setpriv",
        "--pdeathsig",
        "TERM",
        binary,
        "-c",
        str(config),
        "-p",
        str(config.parent),
        "-e",
        str(config.parent / "error.log"),
    ]


def _serving(site: RealSite) -> None:
    """Wait until a file of the site's folder is answered; raise URLError when that does not come."""
    until = time.monotonic() + _START_SECONDS
    scheme = site.seeds[0].partition(":")[0]
    trusting = ssl._create_unverified_context()  # the certificate is of other names
    while True:
        try:
            urlopen(f"{scheme}://127.0.0.1:{site.port}/ready", timeout=1, context=trusting).close()
            return
        except OSError as refused:  # URLError is one
            if isinstance(refused, HTTPError) or time.monotonic() > until:
                raise
            time.sleep(0.05)
