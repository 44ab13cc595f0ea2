"""Finds a Chromium on this machine, and says how it is started: without a network of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from playwright.async_api import ViewportSize

# The headless shell first: the same engine without a browser's windows shows a page for a third of the CPU (measured).
# Then Debian's, Chrome, and the names other systems give them.
_NAMES = ("chromium-headless-shell", "chromium", "google-chrome-stable", "google-chrome", "chromium-browser", "chrome")
_PLAYWRIGHTS = (
    "chromium_headless_shell-*/chrome-headless-shell-linux*/chrome-headless-shell",  # as it comes now
    "chromium_headless_shell-*/chrome-linux*/headless_shell",
    "chromium-*/chrome-linux*/chrome",
)
# Where Playwright keeps the browsers that `playwright install` fetched; the environment variable is Playwright's.
_PLAYWRIGHT_FOLDER = "~/.cache/ms-playwright"

VIEWPORT: ViewportSize = {"width": 1280, "height": 1024}

NOT_PLAYWRIGHTS = [
    "--disable-popup-blocking",  # there are no clicks here, so no window is asked for
    # With Chromium's own protection a script navigates 200 times in ten seconds at most; without it one that does so
    # every 5 ms kept the browser too busy to let any other page be read (24 s and more beside other load, measured).
    "--disable-ipc-flooding-protection",
]
"""Arguments that Playwright gives Chromium of itself and that are left out here."""


WITHOUT_PEERS = (
    "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete window[name]"
)
"""Runs in every window and frame before the page's own scripts: what talks past HTTP is not there."""


def find_chromium(configured: str) -> str | None:
    """The browser's path: RENDER_BROWSER, else the first that is found. OperatorError: the set one is no program."""
    if configured:
        if not os.access(configured, os.X_OK) or os.path.isdir(configured):
            raise OperatorError(f"RENDER_BROWSER={configured} is no program; give a Chromium's path, or nothing.")
        return configured
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or _PLAYWRIGHT_FOLDER).expanduser()
    for pattern in _PLAYWRIGHTS:
        if paths := sorted(folder.glob(pattern)):
            return str(paths[-1])
    return None


def arguments(page_memory_bytes: int) -> list[str]:
    """Chromium's command line."""
    return [
        # Whatever is not answered by us fails: no name and no address resolves, and all goes through a proxy that is
        # nowhere. Peer connections and QUIC would pass both by UDP.
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--proxy-server=socks5://nowhere.invalid:1",
        "--proxy-bypass-list=<-loopback>",
        "--disable-quic",
        "--dns-prefetch-disable",
        # By this name since Chromium 108, by the other before; 156 sent 240 datagrams with the other alone (measured).
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--mute-audio",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-pings",
        # A page's scripts get no more than this; the rest of its memory is watched from outside.
        f"--js-flags=--max-old-space-size={max(32, page_memory_bytes // 2**20)}",
    ]
