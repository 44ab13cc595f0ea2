"""The soak's nginx, which shows one generation after the other, and the server behind it that breaks off."""

from __future__ import annotations

import contextlib
import signal
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.real_pages.site import nginx_command
from benchmarks.soak.web import CUT_BODY, SoakWeb, configure
from tests.web.waiting import wait_until

Show = Callable[[int], None]
"""Goes over to another generation."""


class _Cut(socketserver.StreamRequestHandler):
    """Promises twice as much as it sends."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {2 * len(CUT_BODY)}\r\n\r\n"
        with contextlib.suppress(OSError):  # the crawl was killed meanwhile
            self.wfile.write(head.encode() + CUT_BODY)


class _CutServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextlib.contextmanager
def served(web: SoakWeb, generation: int) -> Iterator[Show]:
    """The web of a generation, for the length of a block, and the function that shows another one."""
    with _CutServer(("127.0.0.1", web.cut_port), _Cut) as cutting:
        threading.Thread(target=cutting.serve_forever, name="cut", daemon=True).start()
        with subprocess.Popen(nginx_command(configure(web, generation))) as nginx:

            def ready() -> bool:
                with contextlib.suppress(URLError, OSError):
                    urlopen(f"http://127.0.0.1:{web.port}/ready", timeout=1).close()
                    return True
                return False

            def show(number: int) -> None:
                configure(web, number)
                nginx.send_signal(signal.SIGHUP)

            try:
                wait_until(ready, "nginx answers", process=nginx, log=web.folder / "error.log")
                yield show
            finally:
                nginx.terminate()
                cutting.shutdown()
