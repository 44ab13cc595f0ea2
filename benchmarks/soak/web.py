"""The web of a soak: the manuals under very many names, by one nginx, with pages that change and faults by chance.

A host is called CLASS.sNUMBER.test: its class says whose files it shows (a language of Debian's handbook, or
PostgreSQL's manual), or that it is a maze or a page of odd links; its number decides what its robots.txt does and when
it is down. Each is a registered domain of its own, at an address of its own. The links of these manuals are relative,
so that one folder serves any number of hosts.

A *generation* is one visit's state of this web. Of the pages a tenth is another one in each generation and a fifth in
every second, chosen by a checksum of host and path. Each request has a chance of some fault, by nginx's random number
of it. Its log names generation, edition and fault of each answer: that is the server's side of the books.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from benchmarks.real_pages.site import PACKAGES, nginx_user
from tests.web.judge import NGINX_FORMAT

MAZE, ODD = "maze", "odd"
FAULTS = {  # by the first digits of a request's number: each digit a sixteenth of what is left
    "reset": "^000",  # no answer, a TCP reset
    "cut": "^001",  # the connection ends in the middle of the page
    "drip": "^002",  # 40 bytes a second
    "many": "^00[34]",  # 429 with Retry-After
    "busy": "^00[5-8]",  # 503 with Retry-After
    "away": "^00[9ab]",  # 503 without
    "broken": "^00[c-f]",  # 500
    "slow": "^01[0-7]",
}
DOWN = "down"  # a host that resets every connection in this generation
RETRY_AFTER_SECONDS = 1.0  # with ``many`` and ``busy``
_ROBOTS_KINDS = 10  # a host's last digit is the kind of its robots.txt
_DOWN_TURNS = 7  # one in so many of the hosts whose number ends in 5 is down in a generation
_FIRST_IP = 0x7F080000  # 127.8.0.0
_MAZES, _ODDS = 4, 4
_PG_SHARE = 50  # one host in so many shows PostgreSQL's manual, of 1,169 pages; all others have 127
CUT_BODY = b"<html><title>Cut</title><p>" + b"The line breaks here. " * 200


class SoakWeb(NamedTuple):
    """Where it lies and who is in it."""

    folder: Path
    port: int
    cut_port: int  # of the server that breaks off
    hosts: dict[str, str]  # name to address

    @property
    def log(self) -> Path:
        return self.folder / "access.jsonl"

    def front(self, host: str) -> str:
        """The first page of a host, which is its seed."""
        return f"http://{host}:{self.port}/"


def class_of(host: str) -> str:
    """Whose files a host shows."""
    return host.partition(".")[0]


def number_of(host: str) -> int:
    """The host's number, from its name."""
    return int(host.split(".")[1][1:])


def is_down(host: str, generation: int) -> bool:
    """Whether a host resets every connection in a generation; in the first none does."""
    number = number_of(host)
    return generation > 0 and number % 10 == 5 and number // 10 % _DOWN_TURNS == generation % _DOWN_TURNS


def forbidden(host: str, generation: int) -> str:
    """The beginning of the paths that a host's robots.txt forbids in a generation; "" for none."""
    if number_of(host) % _ROBOTS_KINDS or generation % 2 == 0:
        return ""
    return "/sql-" if class_of(host) == "pg" else "/sect.a"


def sources() -> dict[str, Path]:
    """The folder of each class of hosts that show a manual."""
    handbook = sorted(path for path in PACKAGES["debian-handbook"].iterdir() if (path / "index.html").exists())
    return {path.name.lower(): path for path in handbook} | {"pg": PACKAGES["postgresql-doc-15"]}


def lay(folder: Path, port: int, cut_port: int, hosts: int) -> SoakWeb:
    """The web of so many hosts with manuals, and the files that a crawl of it is started with."""
    languages = sorted(sources().keys() - {"pg"})
    names = []
    for number in range(hosts):
        kind = "pg" if number % _PG_SHARE == _PG_SHARE // 2 else languages[number % len(languages)]
        names.append(f"{kind}.s{number:05d}.test")
    names += [f"{MAZE}.s{hosts + number:05d}.test" for number in range(_MAZES)]
    names += [f"{ODD}.s{hosts + _MAZES + number:05d}.test" for number in range(_ODDS)]
    addresses = ((_FIRST_IP + number).to_bytes(4) for number in range(1, len(names) + 1))
    web = SoakWeb(
        folder, port, cut_port, dict(zip(names, (".".join(map(str, each)) for each in addresses), strict=True))
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts").write_text("".join(f"{ip}\t{name}\n" for name, ip in web.hosts.items()))
    (folder / "seeds.txt").write_text("".join(f"{web.front(name)}\n" for name in web.hosts))
    (folder / "nevercrawl.txt").touch()
    return web


def edition(web: SoakWeb, number: int) -> Path:
    """The folder of an edition of all pages, made when it is not there: the first is the files as they are."""
    made = web.folder / "editions" / str(number)
    if made.exists():
        return made
    part = made.with_suffix(".part")
    for name, source in sources().items():
        if number == 0:
            part.mkdir(parents=True, exist_ok=True)
            (part / name).unlink(missing_ok=True)
            (part / name).symlink_to(source)
            continue
        (part / name).mkdir(parents=True, exist_ok=True)
        for page in source.glob("*.html"):
            (part / name / page.name).write_bytes(_changed(page.read_bytes(), number))
    part.rename(made)
    return made


_BODY = re.compile(rb"<body[^>]*>")


def _changed(page: bytes, number: int) -> bytes:
    """A page with a line more at its top, as a site does that says when it was made."""
    line = b"<p>This page was made anew for edition %d.</p>" % number
    return _BODY.sub(lambda found: found[0] + line, page, count=1)


_SERVER = """
{user} daemon off; worker_processes 1; worker_rlimit_nofile 65536;
pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 16384; }}
http {{
  include /etc/nginx/mime.types; default_type application/octet-stream; charset utf-8;
  variables_hash_max_size 4096; map_hash_max_size 65536; map_hash_bucket_size 128;
  log_format soak escape=json '{format}';
  access_log {folder}/access.jsonl soak buffer=64k flush=1s;
  keepalive_requests 100000; keepalive_timeout 75s; sendfile on; tcp_nodelay on; reset_timedout_connection on;
  open_file_cache max=20000 inactive=600s;
  client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
  map $host $class {{ default none; ~^(?<kind>[a-z-]+)\\.s\\d+\\.test$ $kind; }}
  map $host $fall {{ default ""; {down} }}
  map $request_id $chance {{ default ""; {chances} }}
  map "$fall" $fault {{ default $fall; "" $chance; }}
  map $fault $retry {{ default ""; many {retry}; busy {retry}; }}
  map $fault $rate {{ default 0; slow 20k; drip 40; }}
  split_clients "$host$uri" $edition {{ 10% {often}; 20% {seldom}; * 0; }}
  map "$class$uri" $invented {{ default ""; ~^maze/robots.txt ""; ~^maze maze; ~^odd/$ odd; }}
  map $host $forbidden {{ default "";
    {shut} }}
  server {{
    listen {port} backlog=8192; allow 127.0.0.0/8; deny all;
    add_header Retry-After $retry always; limit_rate $rate;
    if ($fault = down) {{ return 444; }}
    if ($fault = reset) {{ return 444; }}
    if ($fault = many) {{ return 429; }}
    if ($fault = busy) {{ return 503; }}
    if ($fault = away) {{ return 503; }}
    if ($fault = broken) {{ return 500; }}
    if ($fault = cut) {{ rewrite ^ /-cut last; }}
    if ($invented) {{ rewrite ^ /-$invented last; }}
    location = /ready {{ access_log off; alias {folder}/seeds.txt; }}
    location = /-cut {{ internal; proxy_pass http://127.0.0.1:{cut_port}; proxy_buffering off; }}
    location = /-maze {{ internal; default_type text/html;
      return 200 '<title>A room</title><p>Doors.<a href="/room/$request_id">one</a>
        <a href="/room/$request_length/$connection/$msec">two</a>'; }}
    location = /-odd {{ internal; default_type text/html; alias {folder}/odd.html; }}
    location = / {{ return 302 /index.html; }}
    location = /robots.txt {{ default_type text/plain; {robots} return 200 "User-agent: *\\nDisallow: $forbidden\\n"; }}
    location = /rules.txt {{ default_type text/plain; return 200 "User-agent: *\\nDisallow:\\n"; }}
    location ~ \\.html$ {{ root {folder}/editions/$edition/$class; }}
    location / {{ root {folder}/editions/0/$class; }}
  }}
}}
"""
_MORE_FIELDS = ',"generation":{generation},"edition":"$edition","fault":"$fault"}}'
_LONG_PATH = "x" * 2100  # more than SCOPE_MAX_URL_LENGTH
ODD_LINKS = (  # what a page may name: each must be refused or answered, none may harm
    *("javascript:alert(1)", "mailto:a@b.test", "data:text/html,x", "file:///etc/passwd", "http://[::1", "http://%00/"),
    *("http://odd.test:22/", "http://127.0.0.1:6379/", f"/{_LONG_PATH}", "/%1b%5b31mred.html"),
    *("//elsewhere.test/", "/" + "a/" * 30, "/a/b/a/b/a/b/a/b/", "?jsessionid=1;2;3"),
    *("/\u202etxt.html", "/caf\u00e9.html", "/%ff%fe.html", "http://user:secret@odd.test/", "/file.zip", "/'\"><b>"),
)


def configure(web: SoakWeb, generation: int) -> Path:
    """nginx's configuration for a generation, and the editions that it shows."""
    seldom = generation // 2 * 2
    for number in {0, generation, seldom}:
        edition(web, number)
    links = "".join(f'<a href="{link}">a</a>\n' for link in ODD_LINKS)
    (web.folder / "odd.html").write_text(f"<meta charset=utf-8><title>Odd</title>{links}")
    down = " ".join(f"{host} {DOWN};" for host in web.hosts if is_down(host, generation))
    shut = "".join(f"{host} {path};\n" for host in web.hosts if (path := forbidden(host, generation)))
    unreachable = "500" if generation % 3 == 2 else "404"  # a good copy of it is a month old at most
    robots = (
        "if ($host ~ 1\\.test$) { return 404; } if ($host ~ 2\\.test$) { return 301 /rules.txt; } "
        f"if ($host ~ 3\\.test$) {{ return {unreachable}; }}"
    )
    config = web.folder / "nginx.conf"
    config.write_text(
        _SERVER.format(
            user=nginx_user(),
            folder=web.folder,
            port=web.port,
            cut_port=web.cut_port,
            format=NGINX_FORMAT.removesuffix("}") + _MORE_FIELDS.format(generation=generation).replace("}}", "}"),
            down=down,
            shut=shut,
            robots=robots,
            chances=" ".join(f"~{digits} {name};" for name, digits in FAULTS.items()),
            retry=f"{RETRY_AFTER_SECONDS:g}",
            often=generation,
            seldom=seldom,
        )
    )
    return config
