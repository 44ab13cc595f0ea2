"""A small WebSub hub: ``python -m tests.web.hub --folder DIR --address 127.0.0.200``.

It takes subscriptions, verifies their intent, fetches a topic at a notice that it changed (``hub.mode=publish``) and
pushes it, signed, to all who subscribed; at ``/moved/`` it redirects to ``/``. DIR then holds
``hub.jsonl``, a line for each request and each answer that it was given, and ``hub``, the hub's URL. A
publisher may ask for a push with a flaw (``flaw=``), which tests need.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import http.client
import json
import os
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

NAME = "hub.test"
ROBOTS = b"User-agent: *\nDisallow: /closed/\n"
TIMEOUT_SECONDS = 10.0


class Hub(ThreadingHTTPServer):
    """Its subscriptions by topic and callback."""

    def __init__(self, address: str, folder: Path) -> None:
        super().__init__((address, 0), Asked)
        self.folder = folder
        self.secrets: dict[tuple[str, str], str] = {}  # (topic, callback)
        self._log = os.open(folder / "hub.jsonl", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)

    def log(self, **fields: object) -> None:
        os.write(self._log, (json.dumps({"time": time.time(), **fields}) + "\n").encode())

    def subscribe(self, form: dict[str, str]) -> None:
        """Verify the intent (5.3); remember who confirms."""
        topic, callback = form["hub.topic"], form["hub.callback"]
        challenge = secrets.token_hex(16)
        question = {
            "hub.mode": "subscribe", "hub.topic": topic, "hub.challenge": challenge,
            "hub.lease_seconds": form.get("hub.lease_seconds", "864000"),
        }  # fmt: skip
        status, body = ask("GET", f"{callback}?{urlencode(question)}")
        good = 200 <= status < 300 and body == challenge.encode()
        self.log(did="verified", topic=topic, callback=callback, status=status, good=good)
        if good:
            self.secrets[topic, callback] = form.get("hub.secret", "")

    def publish(self, topic: str, flaw: str) -> None:
        """Fetch the topic (from loopback, whatever its host) and push it."""
        parts = urlsplit(topic)
        _, body = ask("GET", f"http://127.0.0.1:{parts.port}{parts.path}", {"Host": parts.netloc})
        for (known, callback), secret in list(self.secrets.items()):
            if known != topic:
                continue
            key = "somebody else's" if flaw == "signature" else secret
            own = f"{topic}/another" if flaw == "topic" else topic
            headers = {
                "Content-Type": "text/html" if flaw == "type" else "application/atom+xml",
                "Link": f'<{self.url()}/>; rel="hub", <{own}>; rel="self"',
                "X-Hub-Signature": "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest(),
            }
            if flaw == "unsigned":
                del headers["X-Hub-Signature"]
            status, answer = ask("POST", callback, headers, body)
            self.log(did="pushed", topic=topic, flaw=flaw, status=status, answer=answer.decode())

    def url(self) -> str:
        return f"http://{NAME}:{self.server_port}"


class Asked(BaseHTTPRequestHandler):
    """A request to the hub."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.log(did="asked", method="GET", path=self.path)
        found = self.path == "/robots.txt"
        self._answer(200 if found else 404, ROBOTS if found else b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = {name: values[-1] for name, values in parse_qs(body.decode()).items()}
        self.server.log(did="asked", method="POST", path=self.path, form=form, agent=self.headers["User-Agent"])
        if self.path == "/moved/":
            return self._answer(308, b"elsewhere", location="/")
        if form.get("hub.mode") == "publish":
            work = threading.Thread(target=self.server.publish, args=(form["hub.url"], form.get("flaw", "")))
        elif form.get("hub.mode") == "subscribe":
            work = threading.Thread(target=self.server.subscribe, args=(form,))
        else:
            return self._answer(400, b"unknown mode")
        self._answer(202, b"")
        work.start()
        return None

    def _answer(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Its own log has it."""


def ask(method: str, url: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> tuple[int, bytes]:
    """Status and body of one request."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.web.hub", description="Serve a WebSub hub on loopback.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--address", default="127.0.0.200")
    given = parser.parse_args()
    hub = Hub(given.address, given.folder)
    part = given.folder / "hub.part"
    part.write_text(hub.url())
    part.rename(given.folder / "hub")
    hub.serve_forever()


if __name__ == "__main__":
    main()
