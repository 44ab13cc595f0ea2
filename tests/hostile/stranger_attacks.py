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
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena, page
from tests.stores.redis_servers import redis_server
from tests.web.running import crawl_command, one_pace, start
from tests.web.waiting import wait_until

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
    "FETCH_DNS_SERVERS": '["127.0.0.1:9"]',  # where none answers: names of no site do not resolve
    "FETCH_DNS_TIMEOUT_SECONDS": "1",
}
#: What victims answer to what strangers want of them.
TROUBLES = {
    "limited": answer("slow down", "429 Too Many Requests", Retry_After="1"),
    "hour": answer("slow down", "429 Too Many Requests", Retry_After="3600"),
    "busy": answer("busy", "503 Service Unavailable"),
    "hanging": None,
}
LATE, PROMPT, NAMED, HIDDEN = "late.com", "control.com", "named.com", "front.com"
#: Name of a victim -> name of the site that nobody attacks and that is crawled as it is.
CONTROLS = {
    "links-limited.com": LATE,
    "links-busy.com": LATE,
    "links-hanging.com": LATE,
    "robots-limited.com": LATE,
    "robots-hanging.com": LATE,
    "links-hour.com": PROMPT,
    "robots-hour.com": PROMPT,
    HIDDEN: NAMED,
}
REAL_HOSTS = [f"real{number}.town.com" for number in range(8)]
_HANGS_SECONDS = 3.0  # longer than is waited for
_LETTERS = "abcdefghij"
_MOVED = 5  # sites whose robots.txt leads to each victim
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


def _page_of(asked: Asked, links: list[str]) -> bytes | None:
    return page(*links, text=asked.host) if asked.path == "/" else None


@dataclass(slots=True)
class Attacks:
    """All of them at once, in one arena; each site that counts has so many articles."""

    web: Arena
    articles: int = 60

    def seeds(self) -> list[str]:
        """Make all sites; what the crawl begins with."""
        web = self.web
        seeds: list[str] = []
        wanted: list[str] = []  # by the stranger
        for name in [*CONTROLS, *dict.fromkeys(CONTROLS.values())]:
            late = LATE in (name, CONTROLS.get(name))
            url = web.raw_site(name, partial(_site, articles=range(0 if late else self.articles)))
            how, _, trouble = name.removesuffix(".com").partition("-")
            if name not in (HIDDEN, NAMED):
                seeds += [url, self._list_of(name)] if late else [url]
            if how == "links":
                wanted += [web.url(name, f"/{trouble}/{number}") for number in range(_WANTED)]
            elif how == "robots":
                seeds += [self._moved_robots(name, trouble, number) for number in range(_MOVED)]
        wanted += [web.url(HIDDEN, f"/dead/{number}") for number in range(_DEAD)] + [web.url(HIDDEN)]
        seeds += [web.site(f"evil{n}.com", partial(_page_of, links=wanted[n::2])) for n in range(2)]
        seeds.append(web.site("friend.com", partial(_page_of, links=[web.url(NAMED)])))
        return seeds + self._places()

    def _list_of(self, name: str) -> str:
        """A slow host of a late site's, whose second page names the site's articles."""
        links = [self.web.url(name, f"/article/{number}") for number in range(self.articles)]
        return self._slow(f"list.{name}", links)

    def _slow(self, name: str, links: list[str]) -> str:
        rules = answer(f"User-agent: *\nCrawl-delay: {LIST_SECONDS}\n", mime="text/plain")
        pages = {"/robots.txt": rules, "/": page("/all", text=name), "/all": page(*links, text="all")}
        return self.web.site(name, lambda asked: pages.get(asked.path))

    def _moved_robots(self, name: str, trouble: str, number: int) -> str:
        moved = answer(status="302 Found", Location=self.web.url(name, f"/{trouble}/{number}"))
        there = f"{trouble}{number}.com"
        return self.web.site(there, lambda asked: moved if asked.path == "/robots.txt" else page(text=there))

    def _places(self) -> list[str]:
        """A domain and a name whose places one stranger takes with what is not there, before another names the rest."""
        web = self.web
        for name in [*REAL_HOSTS, "dock.com"]:
            web.raw_site(name, partial(_site, articles=range(3)))
        dead = [f"http://dead{number}.town.com:{web.port}/" for number in range(30)]
        dead += [f"http://dock.com:{port}/" for port in range(web.port + MORE_PORTS + 1, web.port + MORE_PORTS + 9)]
        live = [web.url(name) for name in REAL_HOSTS]
        live += [f"http://dock.com:{web.port + 1 + number}/" for number in range(MORE_PORTS)]
        return [web.site("taker.com", partial(_page_of, links=dead)), self._slow("guide.com", live)]

    # --- what came of it ----------------------------------------------------------------------------

    def done(self) -> bool:
        """Whether the sites that nobody attacks have been asked for all, and the others have had as long."""
        controls = set(CONTROLS.values())
        if not all(len(self.asked(name)) >= self.articles for name in controls):
            return False
        lasted = max(self.asked(name)[-1] - self._named_at(name) for name in controls)
        began = [self._named_at(name) for name in CONTROLS if self.asked(name)]
        return time.time() > max(began, default=0.0) + lasted + PACE_SECONDS

    def asked(self, name: str) -> list[float]:
        """When each article of a site was asked for first."""
        first: dict[str, float] = {}
        for visit in self.web.of(name):
            if visit.path.startswith("/article/"):
                first.setdefault(visit.path, visit.start)
        return sorted(first.values())

    def _named_at(self, name: str) -> float:
        """When the page that names a site's articles, or its front page, was answered."""
        by = {HIDDEN: ("evil0.com", "/"), NAMED: ("friend.com", "/")}
        late = LATE in (name, CONTROLS.get(name))
        host, path = by.get(name, (f"list.{name}", "/all") if late else (name, "/"))
        return min(visit.end for visit in self.web.of(host) if visit.path == path)

    def shares(self) -> dict[str, float]:
        """What each victim got in the time in which its control got all: the share of that."""
        found = {}
        for victim, control in CONTROLS.items():
            lasted = self.asked(control)[-1] - self._named_at(control) + PACE_SECONDS
            until = self._named_at(victim) + lasted
            found[victim] = sum(at <= until for at in self.asked(victim)) / self.articles
        return found

    def real_places(self) -> tuple[int, int]:
        """Hosts of the domain, and ports of the name, that are there and were asked for a page."""
        ports = {visit.port for visit in self.web.of("dock.com")} - {self.web.port}
        return sum(bool(self.web.of(name)) for name in REAL_HOSTS), len(ports)


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
        attacks = Attacks(web, articles=200)  # links of another worker may come a second later than a worker's own
        with fleet(web, kind, attacks.seeds()) as check:
            wait_until(lambda: (check(), attacks.done())[1], "done", seconds=90)
            wait_until(lambda: attacks.real_places() == (len(REAL_HOSTS), MORE_PORTS), "places", seconds=20)
        found = attacks.shares()
    for victim, share in found.items():
        print(f"{victim:22} {share:6.1%} of what {CONTROLS[victim]} got")
    return 0 if min(found.values()) >= LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
