"""The apps profile: pages that scripts build, and pages that are a burden to a browser."""

from __future__ import annotations

import json

from tests.web.answers import answer, page_html, text
from tests.web.graph import Fate, Page, World
from tests.web.profiles.sites import robots_of

_SLOW_SECONDS = 40.0  # longer than any page may stay in the browser
_BUILD = """
const root = document.getElementById('root');
const links = names => names.map(n => `<a href="${n}">${n}</a>`).join(' ');
document.cookie = 'seen=' + location.hostname;
fetch('/data.json').then(r => r.json()).then(data => {
  root.innerHTML = `<h1>${data.title}</h1><p>${data.text}</p>` + links(data.links);
});
fetch('/vote', {method: 'POST', body: 'x'}).catch(() => 0);
for (const address of ['/private/data.json', 'EXCLUDED', 'TRACKER']) fetch(address).catch(() => 0);
new WebSocket('ws://' + location.host + '/socket');
navigator.sendBeacon('/beacon', 'x');
""".strip()
_HEAD = (
    '<link rel="stylesheet" href="/style.css"><link rel="icon" href="/icon.png">'
    "<style>@font-face{font-family:f;src:url(/font.woff2)}body{font-family:f;background:url(/back.png)}</style>"
)
_MEDIA = '<img src="/picture.png"><video src="/film.webm" autoplay></video><iframe src="/framed"></iframe>'
_NEVER_LOADED = "<script src='/slow.js'></script>"
_HOSTILE = {
    "loop": "while (true) {}",
    "late-loop": "setTimeout(() => { while (true) {} }, 100)",
    "hog": "let kept = []; setInterval(() => kept.push(new Uint8Array(2e7).fill(7)), 9)",
    "heap": "let kept = []; setInterval(() => { kept.push(new Array(1e6).fill({})) }, 5)",
    "dialogs": "onbeforeunload = () => 'stay'; for (let i = 0; i < 9; i++) { alert(i); confirm(i); prompt(i) }",
    "downloads": "let a = document.createElement('a'); a.download = 'f';"
    "a.href = URL.createObjectURL(new Blob(['']));"
    "for (let i = 0; i < 9; i++) a.click()",
    "windows": "for (let i = 0; i < 9; i++) open('/window' + i)",
    "redirects": "let n = 0; setInterval(() => { location.href = '/target?' + (n++ % 3) }, 5)",
    "reloads": "setInterval(() => location.reload(), 5)",
}


def shell(script: str, head: str = "", body: str = "") -> bytes:
    """A page whose words come from ``script`` alone."""
    notice = "<noscript>You need to enable JavaScript to run this app.</noscript>"
    return (
        f'<!DOCTYPE html><html><head><title>app</title>{head}</head><body>{notice}<div id="root"></div>{body}'
        f"{script}</body></html>"
    ).encode()


def apps_world(port: int) -> World:
    """An application, the hosts it asks, some that share a domain, hostile pages and an anti-bot wall."""
    world = World(port)
    fronts = [_application(world), *_isolated(world), _wall(world), *_hostile(world), _framed(world)]
    plain = world.site("plain.test")
    robots_of(plain)
    for number in range(30):
        links = [f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < 30]
        plain.pages[f"/{number or ''}"] = Page(
            answer(page_html(f"plain {number}", links)), tuple(world.url("plain.test", link) for link in links)
        )
    world.seeds = [*fronts, world.url("plain.test")]
    return world


def _script(code: str, kind: str = "text/javascript") -> Page:
    return Page(answer(code.encode(), kind=kind), fate=Fate.MAY)


def _application(world: World) -> str:
    app, cdn = world.site("app.test"), world.site("cdn.test")
    robots_of(app, b"User-agent: *\nDisallow: /private/\n")
    robots_of(cdn, b"User-agent: *\nDisallow: /secret.js\n")
    for name in ("never.excluded.test", "www.google-analytics.com"):
        robots_of(world.site(name))
        world.sites[name].pages["/t.js"] = _script("1")
    world.nevercrawl.add("excluded.test")
    excluded, tracker = world.url("never.excluded.test", "/t.js"), world.url("www.google-analytics.com", "/t.js")
    code = _BUILD.replace("EXCLUDED", excluded).replace("TRACKER", tracker)
    app.pages["/app.js"] = _script(code)
    cdn.pages |= {"/library.js": _script("window.library = 1"), "/secret.js": _script("1")}
    scripts = f'<script src="{world.url("cdn.test", "/library.js")}"></script>'
    scripts += f'<script src="{world.url("cdn.test", "/secret.js")}"></script><script src="/app.js"></script>'
    built = [world.url("app.test", f"/built/{number}") for number in range(3)]
    data = {"title": "Built", "text": text("built", 300), "links": built}
    app.pages["/data.json"] = _script(json.dumps(data), "application/json")
    app.pages["/private/data.json"] = _script("{}", "application/json")
    for path in ("/", "/second", "/third"):
        app.pages[path] = Page(answer(shell(scripts, _HEAD, _MEDIA)), tuple(built))
    app.pages["/framed"] = Page(answer(page_html("framed")))
    for number in range(3):
        app.pages[f"/built/{number}"] = Page(answer(page_html(f"built {number}", ["/second", "/third"])))
    return world.url("app.test")


def _isolated(world: World) -> list[str]:
    """Hosts of one domain: a cookie for the domain must not pass from one's page to the other's."""
    code = (
        "const before = document.cookie || 'nothing'; document.cookie = `mark=${location.hostname}; domain=iso.test`;"
        "document.getElementById('root').innerHTML = `<a href='/saw/${encodeURIComponent(before)}'>x</a>`"
    )
    names = [f"{name}.iso.test" for name in ("one", "two", "three", "four")]
    for name in names:
        site = world.site(name)
        robots_of(site)
        site.pages["/"] = Page(answer(shell(f"<script>{code}</script>")))
        site.pages["/saw/nothing"] = Page(answer(page_html("clean")))
    return [world.url(name) for name in names]


def _wall(world: World) -> str:
    site = world.site("wall.test")
    robots_of(site)
    wall = shell(
        "<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script>", body="Just a moment"
    )
    for path in ("/", "/1", "/2"):
        site.pages[path] = Page(answer(wall, status=403), fate=Fate.MAY)
    return world.url("wall.test")


def _hostile(world: World) -> list[str]:
    """One host a habit: on one they would wait for each other."""
    codes = {**_HOSTILE, "waiting": "fetch('/slow.js')", "unfinished": ""}
    # These would be read before they are too large, on a machine too slow to fill memory: they never count as loaded.
    unloaded = {"hog", "heap", "unfinished"}
    for name, code in codes.items():
        site = world.site(f"{name}.hostile.test")
        robots_of(site)
        script = f"<script>{code}</script>" + (_NEVER_LOADED if name in unloaded else "")
        site.pages["/"] = Page(answer(shell(script)))
        site.pages["/slow.js"] = Page(answer(b"1", kind="text/javascript", wait_seconds=_SLOW_SECONDS), fate=Fate.MAY)
    return [world.url(f"{name}.hostile.test") for name in codes]


def _framed(world: World) -> str:
    """A shell without a gain: what rendering finds is what was there."""
    site = world.site("idle.test")
    robots_of(site)
    for path in ("/", *(f"/{number}" for number in range(8))):
        links = "".join(f'<a href="/{number}">{number}</a>' for number in range(8)) if path == "/" else ""
        site.pages[path] = Page(answer(shell("<script>1</script>", body=links)))
    return world.url("idle.test")


def many_apps(port: int, hosts: int, pages: int) -> World:
    """``pages`` script-built pages over ``hosts`` hosts, for measuring; each host's pages share one script."""
    world = World(port)
    for number in range(hosts):
        site = world.site(f"app{number}.test")
        robots_of(site)
        site.pages |= _one_app(number, pages // hosts)
        world.seeds += [world.url(site.host, f"/{page}") for page in range(pages // hosts)]
    return world


def _one_app(number: int, pages: int) -> dict[str, Page]:
    code = (
        "fetch('/data' + location.pathname + '.json').then(r => r.json()).then(d => {"
        "document.getElementById('root').innerHTML = '<h1>' + d.title + '</h1>' + d.rows.map("
        "r => `<p>${r}</p><a href='/built/${d.title}'>more</a>`).join('') })"
    )
    made = {"/app.js": _script(code + "\n//" + "x" * 100_000)}
    for page in range(pages):
        rows = [text(f"{number} {page} {row}", 40) for row in range(20)]
        made[f"/{page}"] = Page(answer(shell("<script src='/app.js'></script>")))
        made[f"/data/{page}.json"] = _script(json.dumps({"title": page, "rows": rows}), "application/json")
        made[f"/built/{page}"] = Page(answer(page_html(f"built {page}")))
    return made
