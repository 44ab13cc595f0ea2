"""The manners profile: the small one, and a host for every way to ask a crawler for patience, or to have none to give.

``127.0.0.0/9`` is this web's public part. Its names and links also lead to 127.200.x.x, which answers like the rest
but stands for addresses inside a private network: a visitor there was let in.
"""

from __future__ import annotations

import time

from tests.web.answers import answer, redirect, refusal, refusal_until
from tests.web.graph import Answer, Fate, Page, Site, World
from tests.web.profiles.sites import _html as html
from tests.web.profiles.sites import robots_of as allow_robots
from tests.web.profiles.sites import small_world

#: What a crawl of this profile may contact.
ALLOWED_NETWORK = "127.0.0.0/9"
SHARED_NAMES = tuple(f"crowd-{number}.test" for number in range(1, 9))
ABSURD = ("absurd-number.test", "absurd-date.test")
_INSIDE = "127.200.0."
_SILENCE = Answer(0, (), close=True)  # the connection ends without a byte
_LONG_SECONDS = 4.0  # longer than the crawl waits for a first byte
_DEAD_PAGES = 12
_CUT_PAGES = 4


def manners_world(port: int) -> World:
    """All sites, linked from ``patience.test``."""
    world = small_world(port)
    fronts: list[str] = []
    for build in (
        _rests,
        _absurd,
        _backing_off,
        _dead,
        _robots_late,
        _jumps,
        _crowd,
        _fan,
        _hours,
        _rate,
        _flapping,
        _cut,
    ):
        fronts += build(world)
    _inside(world, fronts)
    site = world.site("patience.test")
    allow_robots(site)
    world.seeds.append(html(world, site, "/", fronts))
    return world


def _site(world: World, name: str, paths: list[str], ip: str = "") -> Site:
    """A site whose front page links to ``paths``."""
    site = world.site(name, ip)
    allow_robots(site)
    for path in paths:
        html(world, site, path, [])
    html(world, site, "/", paths)
    return site


def _rests(world: World) -> list[str]:
    """Retry-After in seconds, and as a date: the other pages of the host wait as well."""
    made = {"rest-seconds.test": refusal(429, "4", 4.0), "rest-date.test": refusal_until(503, 3.0)}
    for name, first in made.items():
        site = _site(world, name, ["/busy", "/other/1", "/other/2"])
        site.pages["/busy"] = site.pages["/busy"]._replace(first=(first,))
    return [world.url(name) for name in made]


def _absurd(world: World) -> list[str]:
    """Retry-After of centuries: nothing more is asked in this crawl. Of nonsense: as if there were none."""
    values = {ABSURD[0]: "9" * 400, ABSURD[1]: "Fri, 31 Dec 9999 23:59:59 GMT"}
    for name, value in values.items():
        site = _site(world, name, ["/1", "/2"])
        site.pages = {path: page._replace(fate=Fate.MAY) for path, page in site.pages.items()}
        site.pages["/"] = site.pages["/"]._replace(answer=refusal(429, value, 1e9))
    site = _site(world, "nonsense.test", ["/1"])
    nonsense = tuple(answer(b"later", status=429, headers=[f"Retry-After: {text}"]) for text in ("soon", "-5"))
    site.pages["/1"] = site.pages["/1"]._replace(first=nonsense)
    return [world.url(name) for name in (*values, "nonsense.test")]


def _backing_off(world: World) -> list[str]:
    """429 without a Retry-After, four times."""
    site = _site(world, "backoff.test", ["/1"])
    site.pages["/1"] = site.pages["/1"]._replace(first=(answer(b"slow down", status=429),) * 4)
    return [world.url("backoff.test")]


def _dead(world: World) -> list[str]:
    """Hosts that take connections and never answer: from the beginning, or all pages but robots.txt."""
    fronts = []
    for name in ("mute.test", "fallen.test"):
        site = world.site(name)
        site.pages["/robots.txt"] = Page(_SILENCE)
        for number in range(_DEAD_PAGES):
            site.pages[f"/{number}"] = Page(_SILENCE, fate=Fate.MAY)  # there is nothing to archive
            fronts.append(world.url(name, f"/{number}"))
    allow_robots(world.sites["fallen.test"])
    return fronts


def _robots_late(world: World) -> list[str]:
    """robots.txt that comes too late, or is unavailable for the moment: no page."""
    late = Page(answer(b"User-agent: *\nDisallow:\n", kind="text/plain", wait_seconds=_LONG_SECONDS))
    busy = Page(answer(b"busy", status=503, kind="text/plain"))
    for name, robots in (("late-robots.test", late), ("busy-robots.test", busy)):
        site = _site(world, name, ["/1"])
        site.pages["/robots.txt"] = robots
        site.reachable = False
    return [world.url(name) for name in ("late-robots.test", "busy-robots.test")]


def _jumps(world: World) -> list[str]:
    """A host whose every page is at another host: that one's pace holds."""
    landings = [f"/landing/{number}" for number in range(6)]
    _site(world, "land.test", landings)
    jump = _site(world, "jump.test", [])
    for path in landings:
        jump.pages[path] = Page(redirect(world.url("land.test", path), 302), (world.url("land.test", path),))
    html(world, jump, "/", landings)
    return [world.url("jump.test")]


def _crowd(world: World) -> list[str]:
    """Eight names at one address."""
    ip = ""
    for name in SHARED_NAMES:
        ip = _site(world, name, ["/1"], ip).ip
    return [world.url(name) for name in SHARED_NAMES]


def _fan(world: World) -> list[str]:
    """One name at three addresses."""
    site = _site(world, "fan.test", [f"/{number}" for number in range(5)])
    site.more_ips = ("127.9.0.2", "127.9.0.3")
    return [world.url("fan.test")]


def _hours(world: World) -> list[str]:
    """Visit-time: one host's hours are over for today, another's last until tomorrow."""
    minute = int(time.time() % 86400 // 60)
    hours = {"closed.test": (minute + 180, minute + 240), "open.test": (minute - 60, minute + 180)}
    for name, (first, last) in hours.items():
        site = _site(world, name, ["/1"])
        span = "-".join(f"{time // 60 % 24:02}{time % 60:02}" for time in (first, last))
        allow_robots(site, f"User-agent: *\nVisit-time: {span}\nDisallow: /never\n".encode())
    world.sites["closed.test"].reachable = False
    return [world.url(name) for name in hours]


def _rate(world: World) -> list[str]:
    """Request-rate asks for two seconds between requests."""
    site = _site(world, "rate.test", ["/1", "/2"])
    site.floor_seconds = 2.0
    allow_robots(site, b"User-agent: *\nRequest-rate: 1/2\n")
    return [world.url("rate.test")]


def _flapping(world: World) -> list[str]:
    """A host whose every page fails once, in its own way, and then is there."""
    site = _site(world, "flap.test", ["/1", "/2", "/3", "/4"])
    broken = answer(b"broken", status=500)
    for path, first in {"/1": _SILENCE, "/2": broken, "/3": answer(b"later", status=503), "/4": _SILENCE}.items():
        site.pages[path] = site.pages[path]._replace(first=(first,))
    return [world.url("flap.test")]


def _cut(world: World) -> list[str]:
    """A front page whose connection broke before its link, once; a host that promises more than it has, always."""
    site = _site(world, "broken-line.test", ["/behind"])
    whole = site.pages["/"].answer.pieces[0]
    half = Answer(200, (whole[: whole.index(b"<ul>")],), close=True)
    site.pages["/"] = site.pages["/"]._replace(first=(half,))
    cutter = _site(world, "cutter.test", [f"/{number}" for number in range(_CUT_PAGES)])
    for path, page in cutter.pages.items():
        if path != "/robots.txt":
            cutter.pages[path] = page._replace(answer=page.answer._replace(pieces=_longer(page.answer), close=True))
    return [world.url("broken-line.test"), world.url("cutter.test")]


def _longer(answer: Answer) -> tuple[bytes, ...]:
    """The same under a Content-Length that is much longer."""
    return (answer.pieces[0].replace(b"Content-Length: ", b"Content-Length: 9"),)


def _inside(world: World, fronts: list[str]) -> None:
    """Ways to an address inside: by name, by number, by redirect, by a robots.txt that has moved, by one of two."""
    for number, name in enumerate(("inside.test", "inside-too.test"), 1):
        site = _site(world, name, ["/secret"], f"{_INSIDE}{number}")
        site.reachable = False
    by_number = world.url(f"{_INSIDE}9", "/secret")
    gate = _site(world, "gate.test", [])
    for path, target in {"/by-name": world.url("inside.test", "/secret"), "/by-number": by_number}.items():
        gate.pages[path] = Page(redirect(target), ())
    html(world, gate, "/", ["/by-name", "/by-number"])
    lured = _site(world, "lured.test", [])
    lured.pages["/robots.txt"] = Page(redirect(world.url("inside-too.test", "/robots.txt")))
    lured.reachable = False
    half = _site(world, "half-inside.test", ["/1"])
    half.more_ips = (f"{_INSIDE}3",)
    world.shunned.add(by_number)
    fronts += [world.url("inside.test"), by_number, world.url("gate.test"), world.url("lured.test")]
    fronts.append(world.url("half-inside.test"))
