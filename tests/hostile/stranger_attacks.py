"""Attacks by strangers on sites in an arena, and what these sites got beside sites that nobody attacked.

The same attacks run in one process (``test_stranger_trouble.py``) and in both kinds of fleet:

    python -m tests.hostile.stranger_attacks local|redis [FOLDER]
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena, page
from tests.stores.redis_servers import redis_server
from tests.web.running import crawl_command, one_pace, start
from tests.web.waiting import wait_until

ARTICLES = 60
PACE_SECONDS = 0.08
#: The late sites' own lists are read so slowly that what strangers want is asked first, and meets its trouble.
LIST_SECONDS = 2
LEAST_SHARE = 0.9
MORE_PORTS = 2  # of the arena, that answer
ATTACKED = {
    **SETTINGS,
    **one_pace(PACE_SECONDS),
    "BACKOFF_MAX_SECONDS": "3600",  # as by default: one that escalates lasts longer than the crawl
    "FETCH_TIMEOUT_SECONDS": "2",
    "SCOPE_MAX_HOSTS_PER_DOMAIN": "40",
}
#: What victims answer to what strangers want of them.
TROUBLES = {
    "limited": answer("slow down", "429 Too Many Requests", Retry_After="1"),
    "hour": answer("slow down", "429 Too Many Requests", Retry_After="3600"),
    "busy": answer("busy", "503 Service Unavailable"),
    "hanging": None,
}
#: Name of a victim -> name of the site that nobody attacks and that is crawled as it is.
CONTROLS = {
    "links-limited.test": "late.test",
    "links-busy.test": "late.test",
    "links-hanging.test": "late.test",
    "robots-limited.test": "late.test",
    "robots-hanging.test": "late.test",
    "links-hour.test": "control.test",
    "robots-hour.test": "control.test",
    "front.test": "named.test",
}
REAL_HOSTS = [f"real{number}.town.test" for number in range(8)]
_HANGS_SECONDS = 3.0  # longer than is waited for
_LETTERS = "abcdefghij"
_WANTED = 60  # links of the stranger to each victim
_DEAD = 400  # to the one that it hides


def _text(number: int) -> str:
    said = "".join(_LETTERS[int(digit)] for digit in f"{number:03}")
    return " ".join(f"{said}x{place}" for place in range(30))


async def _site(asked: Asked, writer: asyncio.StreamWriter, *, articles: range) -> None:
    """A front page that names ``articles``, these, and trouble."""
    _, first, *rest = asked.path.split("/")
    if first in TROUBLES:
        trouble = TROUBLES[first]
        if trouble is None:
            await asyncio.sleep(_HANGS_SECONDS)
        writer.write(trouble or b"")
    elif asked.path == "/robots.txt":
        writer.write(answer(mime="text/plain"))
    elif first == "":
        writer.write(page(*(f"/article/{number}" for number in articles), text="front"))
    elif first == "article":
        writer.write(page(text=_text(int(rest[0]))))
    else:
        writer.write(answer("gone", "404 Not Found"))


def _list_of(web: Arena, name: str) -> str:
    """A slow host of a late site's, whose second page names the site's articles."""
    links = [web.url(name, f"/article/{number}") for number in range(ARTICLES)]
    rules = answer(f"User-agent: *\nCrawl-delay: {LIST_SECONDS}\n", mime="text/plain")
    pages = {"/robots.txt": rules, "/": page("/all", text="lists"), "/all": page(*links, text="all")}
    return web.site(f"list.{name}", lambda asked: pages.get(asked.path))


def _moved_robots(web: Arena, name: str, target: str) -> str:
    moved = answer(status="302 Found", Location=target)
    return web.site(name, lambda asked: moved if asked.path == "/robots.txt" else page(text=name))


def attacked(web: Arena) -> list[str]:
    """All sites; the seeds."""
    seeds: list[str] = []
    wanted: list[str] = []  # by the stranger
    for name in [*CONTROLS, *dict.fromkeys(CONTROLS.values())]:
        late = "late.test" in (name, CONTROLS.get(name))
        url = web.raw_site(name, partial(_site, articles=range(0 if late else ARTICLES)))
        how, _, trouble = name.removesuffix(".test").partition("-")
        if name not in ("front.test", "named.test"):
            seeds += [url, _list_of(web, name)] if late else [url]
        if how == "links":
            wanted += [web.url(name, f"/{trouble}/{number}") for number in range(_WANTED)]
        elif how == "robots":
            seeds += [
                _moved_robots(web, f"{trouble}{number}.test", web.url(name, f"/{trouble}/{number}"))
                for number in range(5)
            ]
    wanted += [web.url("front.test", f"/dead/{number}") for number in range(_DEAD)] + [web.url("front.test")]
    seeds += [web.site(f"evil{n}.test", partial(_page_of, links=wanted[n::2])) for n in range(2)]
    seeds.append(web.site("friend.test", partial(_page_of, links=[web.url("named.test")])))
    return seeds + _places(web)


def _page_of(asked: Asked, links: list[str]) -> bytes | None:
    return page(*links, text=asked.host) if asked.path == "/" else None


def _places(web: Arena) -> list[str]:
    """A domain and a name whose places one stranger takes up with what is not there, before another names the rest."""
    for name in [*REAL_HOSTS, "dock.test"]:
        web.raw_site(name, partial(_site, articles=range(3)))
    dead = [f"http://dead{number}.town.test:{web.port}/" for number in range(30)]
    dead += [f"http://dock.test:{port}/" for port in range(web.port + MORE_PORTS + 1, web.port + MORE_PORTS + 9)]
    live = [web.url(name) for name in REAL_HOSTS]
    live += [f"http://dock.test:{web.port + 1 + number}/" for number in range(MORE_PORTS)]
    pages = {
        "/robots.txt": answer(f"User-agent: *\nCrawl-delay: {LIST_SECONDS}\n", mime="text/plain"),
        "/": page("/all", text="a guide"),
        "/all": page(*live, text="all"),
    }
    taker = web.site("taker.test", partial(_page_of, links=dead))
    return [taker, web.site("guide.test", lambda asked: pages.get(asked.path))]


def done(web: Arena) -> bool:
    """Whether the sites that nobody attacks have been asked for all that they have, and the others had as long."""
    controls = set(CONTROLS.values())
    if not all(len(articles(web, name)) >= ARTICLES for name in controls):
        return False
    lasted = max(articles(web, name)[-1] - _named_at(web, name) for name in controls)
    began = [_named_at(web, name) for name in CONTROLS if articles(web, name)]
    return time.time() > max(began, default=0.0) + lasted + PACE_SECONDS


def articles(web: Arena, name: str) -> list[float]:
    """When each article of a site was asked for first."""
    first: dict[str, float] = {}
    for visit in web.of(name):
        if visit.path.startswith("/article/"):
            first.setdefault(visit.path, visit.start)
    return sorted(first.values())


def _named_at(web: Arena, name: str) -> float:
    """When the page that names a site's articles, or its front page, was answered."""
    by = {"front.test": ("evil0.test", "/"), "named.test": ("friend.test", "/")}
    late = "late.test" in (name, CONTROLS.get(name))
    host, path = by.get(name, (f"list.{name}", "/all") if late else (name, "/"))
    return min(visit.end for visit in web.of(host) if visit.path == path)


def shares(web: Arena) -> dict[str, float]:
    """What each victim got in the time in which its control got all: the share of that."""
    found = {}
    for victim, control in CONTROLS.items():
        lasted = articles(web, control)[-1] - _named_at(web, control) + PACE_SECONDS
        until = _named_at(web, victim) + lasted
        found[victim] = sum(at <= until for at in articles(web, victim)) / ARTICLES
    return found


def real_places(web: Arena) -> tuple[int, int]:
    """Hosts of the domain, and ports of the name, that are there and were asked for a page."""
    ports = {visit.port for visit in web.of("dock.test")} - {web.port}
    return sum(bool(web.of(name)) for name in REAL_HOSTS), len(ports)


# --- in a fleet -----------------------------------------------------------------------------------


@contextlib.contextmanager
def fleet(web: Arena, kind: str, seeds: list[str]) -> Iterator[Callable[[], None]]:
    """Two workers, until left; what is given fails when one has ended."""
    listed, hosts = web.folder / "seeds.txt", web.folder / "hosts"
    listed.write_text("\n".join(seeds) + "\n")
    with contextlib.ExitStack() as stack:
        settings = {**ATTACKED, "FLEET_PARTITIONS": "12"}
        if kind == "redis":
            settings["STATE_URL"] = stack.enter_context(redis_server(web.folder / "redis")).url
        names = ["worker-1", "worker-2"] if kind == "redis" else [""]
        processes = []
        for name in names:
            more = {"FLEET_WORKER": name} if name else {}
            command = crawl_command(listed, web.folder / "crawl", hosts, {**settings, **more})
            if not name:
                at = command.index("crawl")
                command = [*command[:at], "fleet", *command[at + 2 :], "--workers", "2"]
            output = stack.enter_context((web.folder / f"fleet{name}.log").open("wb"))
            processes.append(start(command, output))

        def check() -> None:
            assert not any(process.poll() for process in processes), f"see {web.folder}"

        try:
            yield check
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)


def main() -> int:
    """Run the attacks in a fleet and print what the victims got."""
    kind, folder = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    with arena(folder, more_ports=MORE_PORTS) as web:
        seeds = attacked(web)
        with fleet(web, kind, seeds) as check:
            wait_until(lambda: (check(), done(web))[1], "done", seconds=90)
            wait_until(lambda: real_places(web) == (len(REAL_HOSTS), MORE_PORTS), "places", seconds=20)
        found = shares(web)
    for victim, share in found.items():
        print(f"{victim:22} {share:6.1%} of what {CONTROLS[victim]} got")
    print(f"real hosts and ports   {real_places(web)}")
    return 0 if min(found.values()) >= LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
