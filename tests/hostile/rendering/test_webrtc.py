"""Pages that talk past HTTP: peer connections, sockets and whatever else could leave Chromium by itself.

Real sockets on loopback count what arrives. The crawls may ask loopback addresses, so nothing but the browser's own
settings and its network namespace keeps it from them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import sync_playwright

from crawlerproject.config.chromium import NOT_PLAYWRIGHTS, arguments, find_chromium
from crawlerproject.render.browser import Launcher, NoNamespace
from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import Asked, answer, arena
from tests.hostile.ledger import pays
from tests.web.ports import free_port
from tests.web.profiles.apps import shell

# Each way out on its own: what is not there, or forbidden, must not keep the others from being tried.
TALK = """
const at = 'ADDRESS', tries = [
  () => peer(window),
  () => { const f = document.createElement('iframe'); document.body.append(f); peer(f.contentWindow) },
  () => new WebTransport(`https://${at}/transport`),
  () => new WebSocket(`ws://${at}/socket`),
  () => new EventSource(`http://${at}/events`),
  () => navigator.sendBeacon(`http://${at}/beacon`, 'x'),
  () => fetch(`http://${at}/post`, {method: 'POST', mode: 'no-cors', keepalive: true, body: 'x'}),
  () => open(`http://${at}/window`),
  () => new Worker(URL.createObjectURL(new Blob([WORKER]))),
  () => new SharedWorker(URL.createObjectURL(new Blob([WORKER]))),
  () => navigator.serviceWorker.register('/worker.js'),
  () => { const a = document.createElement('a'); a.href = '#'; a.ping = `http://${at}/ping`; a.click() },
  () => { for (const rel of ['dns-prefetch', 'preconnect', 'prefetch', 'prerender', 'modulepreload', 'icon']) {
    const l = document.createElement('link'); l.rel = rel; l.href = `http://${at}/${rel}`; document.head.append(l) } },
  () => { const s = document.createElement('script'); s.type = 'speculationrules';
    s.text = JSON.stringify({prefetch: [{source: 'list', urls: [`http://${at}/guess`]}]}); document.head.append(s) },
];
const WORKER = `for (const f of [() => new WebSocket('ws://${at}/w'), () => new WebTransport('https://${at}/w'),
  () => importScripts('http://${at}/w.js')]) { try { f() } catch {} }`;
function peer(w) {
  const made = new w.RTCPeerConnection({iceServers: [{urls: `stun:${at}`},
    {urls: `turn:${at}?transport=tcp`, username: 'a', credential: 'b'}]});
  made.createDataChannel('x');
  made.createOffer().then(offer => made.setLocalDescription(offer));
}
const failed = [];
for (const go of tries) { try { Promise.resolve(go()).catch(() => 0) } catch (error) { failed.push(String(error)) } }
document.getElementById('root').textContent = 'tried ' + tries.length + ': ' + failed.join('; ');
"""
# ICE sends within 50 ms of an offer and again for seconds.
LISTEN_MS = 1500


class Ears(NamedTuple):
    """What arrived at one port of loopback."""

    address: str
    datagrams: list[bytes]
    connections: list[bytes]


@contextmanager
def ears() -> Iterator[Ears]:
    """Listen for datagrams and connections at one port, in a thread."""
    port = free_port()  # for both protocols: what the system gives for one may be taken for the other
    heard = Ears(f"127.0.0.1:{port}", [], [])
    loop = asyncio.new_event_loop()

    class Datagrams(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            heard.datagrams.append(data)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.connections.append(await reader.read(200))
        writer.close()

    udp, _ = loop.run_until_complete(loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", port)))
    loop.run_until_complete(asyncio.start_server(connected, "127.0.0.1", port))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        udp.close()


def shown(path: str, heard: Ears, *, confined: bool) -> str:
    """Let a Chromium show the page, its document alone answered by us; what the page says of its tries."""
    document = shell(f"<script>{TALK.replace('ADDRESS', heard.address)}</script>").decode()
    ours = arguments(2**29) if confined else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=ours, ignore_default_args=NOT_PLAYWRIGHTS if confined else None
        )
        try:
            page = browser.new_page()  # a secure one: WebTransport and service workers are for these
            page.route("https://page.test/", lambda route: route.fulfill(body=document, content_type="text/html"))
            page.goto("https://page.test/", wait_until="commit")
            page.wait_for_timeout(LISTEN_MS)
            return page.inner_text("#root")
        finally:
            browser.close()


@pytest.fixture(scope="module")
def chromium() -> str:
    """`make test` installs one."""
    path = find_chromium("")
    assert path is not None
    return path


def whole_browser() -> str:
    """Debian's, which `make test` installs beside it."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("a system without Debian's chromium")
    return path


def test_the_sockets_hear_a_browser_that_nothing_keeps_back(chromium: str) -> None:
    """Without our arguments the same page is heard: the tests below can fail."""
    with ears() as heard:
        told = shown(chromium, heard, confined=False)

    assert told.startswith("tried ")
    assert heard.datagrams != []
    assert heard.connections != []


@pytest.mark.parametrize("whole", [False, True])
def test_by_its_arguments_alone_the_browser_is_silent(chromium: str, whole: bool) -> None:
    """No namespace, no script of ours, no interception but of the document: still nothing leaves.

    Neither from the headless shell nor from Debian's whole browser.
    """
    with ears() as heard:
        told = shown(whole_browser() if whole else chromium, heard, confined=True)

    assert told.startswith("tried ")
    assert (heard.datagrams, heard.connections) == ([], [])


def test_in_its_namespace_alone_the_browser_is_silent(chromium: str) -> None:
    """None of our arguments: there is no network to talk to. Skipped where the system allows no namespace."""
    try:
        launcher = Launcher(chromium)
    except NoNamespace as refused:
        pytest.skip(str(refused))
    with ears() as heard:
        told = shown(launcher.path, heard, confined=False)
    launcher.close()

    assert told.startswith("tried ")
    assert (heard.datagrams, heard.connections) == ([], [])
    assert not os.path.exists(launcher.path)


@pytest.mark.parametrize("namespace", [True, False])
def test_a_crawl_lets_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, namespace: bool) -> None:
    """The whole: the page is rendered, has no peer connections, and nothing arrives; without a namespace that is said.

    The innocent host is crawled at its pace meanwhile.
    """
    if not namespace:
        program = tmp_path / "bin" / "unshare"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho unshare: not here >&2\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with ears() as heard, arena(tmp_path / "web") as web:
        script = TALK.replace("ADDRESS", heard.address)

        def talker(asked: Asked) -> bytes | None:
            return answer(shell(f"<script>{script}</script>")) if asked.path == "/" else None

        (tmp_path / "never.txt").write_text("127.0.0.1\n")
        settings = {"RENDER": "auto", "NEVERCRAWL_FILE": str(tmp_path / "never.txt")}
        crawl = web.crawl(web.site("talker.test", talker), web.innocent(pages=10), settings=settings)

        rows = list(read_log(crawl.folder / "log"))
        assert [row["reason"] for row in rows if row["rendered"]] == ["rendered"]
        out = len(heard.datagrams) + len(heard.connections)
        pays("scripts that talk past the crawl", "those they talk to", out, "datagrams and connections", at_most=0)
        assert {row["host"] for row in rows if row["hop"] == "E"} <= {f"talker.test:{web.port}"}
        assert crawl.log.count("The browser gets no network namespace") == (0 if namespace else 1)
        web.assert_undisturbed(least=10, during="scripts that talk past the crawl")
