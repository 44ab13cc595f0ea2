"""``make bench-web-bot-auth``: verifiers that others wrote, before every kind of request that a crawl sends.

Crawls of ``tests/web/signed_sites.py`` (alone and with a real Chromium, by path, through a proxy, as both kinds of
fleet, and a foreign spider under the add-on) sign what they send; what the servers received goes to
http-message-signatures (PyPI), http-message-sig and web-bot-auth (npm), as it came and with one character changed.
Exit status 1 when one that is ours is refused, or one that was changed is not.

web-bot-auth 0.1.3 reads Signature-Agent as a whole, as drafts before June 2026 had it: it judges the site that asks for
that by Accept-Signature.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crawlerproject.rules.identity.key_ring import key_directory
from crawlerproject.stores.operator_files.key_file import read_keys
from tests.stores.redis_servers import redis_server
from tests.web.running import PROJECT
from tests.web.signed_sites import ADDRESS, NONCE, Asked, SignedSites, signed_sites
from tests.web.zygote import direct

HERE = Path(__file__).resolve().parent
NODE = PROJECT / ".venv-conformance" / "node"
SECONDS = 240.0
SPIDER = """
import scrapy
class Plain(scrapy.Spider):
    name = "plain"
    start_urls = [%r, %r]
    custom_settings = {"RETRY_ENABLED": True}
    def parse(self, response):
        yield from response.follow_all(css="a")
"""


class Verdict(NamedTuple):
    """Of each verifier: "" or its objection."""

    python: str  # http-message-signatures
    sig: str  # http-message-sig
    bot: str  # web-bot-auth


def command(*arguments: str, **settings: str) -> list[str]:
    """A command line of Scrapy."""
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", *arguments, *given]


def run(*commands: list[str], cwd: Path = PROJECT, **environment: str) -> None:
    """Run them beside each other to their ends."""
    given = direct(**environment)
    given.pop("SCRAPY_SETTINGS_MODULE", None)  # a foreign project has its own
    started = [
        subprocess.Popen(each, cwd=cwd, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for each in commands
    ]
    for process in started:
        said, _ = process.communicate(timeout=SECONDS)
        if process.returncode:
            sys.exit(f"{process.args!r} ended with {process.returncode}:\n{said.decode()[-3000:]}")


def crawls(sites: SignedSites, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each way to crawl."""
    seeds, given = ("-a", f"seeds={sites.seeds}", "-a", "scope=any"), sites.settings()
    rendered = given | {"RENDER": "auto", "RENDER_TIMEOUT_SECONDS": "40"}

    def crawl(name: str, **more: str) -> list[str]:
        return command("crawl", "web", *seeds, **{**given, "CRAWL_DIR": str(folder / name), **more})

    yield "one process, rendered", lambda: run(crawl("alone", **rendered))
    yield "one process, by path", lambda: run(crawl("path", IDENTITY_COVERS="path"))
    proxy = f"http://{ADDRESS}:{sites.web.server_address[1]}"
    yield "through a proxy", lambda: run(crawl("proxied"), http_proxy=proxy, no_proxy="localhost")
    fleet = command("fleet", *seeds, "--workers", "2", **rendered, CRAWL_DIR=str(folder / "fleet"))
    yield "fleet on this machine, rendered", lambda: run(fleet)

    def in_redis() -> None:
        with redis_server(folder / "redis") as server:
            run(*(crawl("shared", **rendered, STATE_URL=server.url, FLEET_WORKER=name) for name in ("w1", "w2")))

    yield "fleet over Redis, rendered", in_redis

    def foreign() -> None:
        project = folder / "foreign"
        (project / "own").mkdir(parents=True)
        (project / "scrapy.cfg").write_text("[settings]\ndefault = own.settings\n")
        (project / "own" / "__init__.py").touch()
        (project / "own" / "spiders.py").write_text(SPIDER % (sites.url("pages.test"), sites.url("asks.test")))
        lines = ["SPIDER_MODULES = ['own.spiders']", "ADDONS = {'crawlerproject.addon.PoliteCrawl': 100}"]
        (project / "own" / "settings.py").write_text("\n".join(lines))
        run(command("crawl", "plain", **given), cwd=project, PYTHONPATH=f"{project}:{PROJECT}")

    yield "a foreign spider, under the add-on", foreign


def kind_of(asked: Asked) -> str:
    """What kind of request it is."""
    if asked.path == "/robots.txt":
        return "robots.txt"
    kinds = {"/image.png": "requisite", "/app.js": "script", "/data.json": "sub-request", "/busy": "retried"}
    if NONCE in asked.text:
        return "with a nonce"
    if asked.site == "asks.test":
        return "as asked"
    return "redirected" if asked.site == "other.test" else kinds.get(asked.path, "page")


def changed(asked: Asked) -> Iterator[Asked]:
    """The same with one character changed: of the signature, of its parameters, of the agent, of the authority."""
    for field, at in (("signature", 20), ("signature-input", -30), ("signature-agent", -3)):
        headers = []
        for name, value in asked.headers:
            if name.lower() == field:
                place = at % len(value)
                value = value[:place] + ("A" if value[place] != "A" else "B") + value[place + 1 :]
            headers.append((name, value))
        yield asked._replace(headers=headers)
    yield asked._replace(url=asked.url.replace(".test:", ".tesu:"))


def by_python(asked: Asked, keys: dict[str, Any]) -> str:
    """What http-message-signatures says."""
    from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms
    from requests.structures import CaseInsensitiveDict

    class Keys(HTTPSignatureKeyResolver):  # type: ignore[misc]  # installed for this alone
        def resolve_public_key(self, key_id: str) -> Any:
            return keys.get(key_id)

    class Sent(NamedTuple):
        method: str
        url: str
        headers: Any

    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys())
    try:
        verifier.verify(
            Sent(asked.method, asked.url, CaseInsensitiveDict(asked.headers)),
            expect_tag="web-bot-auth",
            require_components=("@authority",),
        )
    except Exception as error:  # whatever it objects
        return str(error) or type(error).__name__
    return ""


def judged(requests: list[Asked], sites: SignedSites) -> list[Verdict]:
    """The verdicts of all three."""
    ring = read_keys(sites.key_file)
    keys = ring.public_keys()
    listed = json.loads(key_directory(ring.keys))["keys"]
    given = [{"method": each.method, "url": each.url, "headers": each.headers} for each in requests]
    found = subprocess.run(
        ["node", str(HERE / "verify.mjs")], cwd=NODE, input=json.dumps({"keys": listed, "requests": given}),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    both = zip(requests, json.loads(found.stdout), strict=True)
    return [Verdict(by_python(each, keys), *npm) for each, npm in both]


def main() -> int:
    """Crawl, judge, print; 1 when a verdict is another than it should be."""
    wrong = []
    heads = ("requests", "PyPI", "sig", "bot", "changed", "refused")
    print(f"{'crawl':<36}", *(f"{head:>8}" for head in heads), " kinds")
    with tempfile.TemporaryDirectory(prefix="web-bot-auth-") as temporary:
        folder = Path(temporary)
        with signed_sites(folder / "web") as sites:
            for name, crawl in crawls(sites, folder):
                sites.web.asked.clear()
                crawl()
                asked = [each for each in sites.web.asked if each.site != "excepted.test"]
                kinds = Counter(map(kind_of, asked))
                of_bot = {at for at, each in enumerate(asked) if kind_of(each) == "as asked" or _as_wanted(each)}
                verdicts = judged(asked, sites)
                others = [(at, other) for at, each in enumerate(asked) for other in changed(each)]
                spoilt = judged([other for _, other in others], sites)
                refused = [bool(each.python and each.sig and each.bot) for each in spoilt]
                for at, (each, verdict) in enumerate(zip(asked, verdicts, strict=True)):
                    objections = (verdict.python, verdict.sig, verdict.bot if at in of_bot else "")
                    if any(objections):
                        wrong.append(f"{name}: {each.url}: {objections}")
                for (_, other), no in zip(others, refused, strict=True):
                    if not no:
                        wrong.append(f"{name}: {other.url}: changed, and taken")
                good = [sum(not verdict[of] for verdict in verdicts) for of in range(2)]
                bot = f"{sum(not verdicts[at].bot for at in of_bot)}/{len(of_bot)}"
                counts = (len(asked), *good, bot, len(others), sum(refused))
                told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
                print(f"{name:<36}", *(f"{count:>8}" for count in counts), f" {told}", flush=True)
    print(*wrong[:20], sep="\n")
    return int(bool(wrong))


def _as_wanted(asked: Asked) -> bool:
    """Whether it covers Signature-Agent as a whole."""
    return '"signature-agent")' in asked.text


if __name__ == "__main__":
    sys.exit(main())
