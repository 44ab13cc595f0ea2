"""The TLS profile: hosts whose certificates fail in one way each, on real TLS, in a thread of this process."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fetch.servers import make_ca, server_tls
from tests.web.answers import answer, page_html
from tests.web.graph import Page, World
from tests.web.server import ServerLog, Visitor, Web, listening_socket

#: Host name to what is wrong with its certificate, as the request log says it; "" when nothing is.
HOSTS = {
    "good.test": "",
    "expired.test": "expired",
    "wrong-name.test": "wrong-name",
    "self-signed.test": "self-signed",
    "unknown.test": "unknown-issuer",
    "own.test": "self-signed",
}


class TlsWeb(NamedTuple):
    """A web that listens on ``port`` with TLS; ``folder`` has hosts, seeds.txt, server.jsonl and ca.pem."""

    folder: Path
    port: int


def _self_signed(folder: Path, name: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=5))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _contexts(folder: Path) -> dict[str, ssl.SSLContext]:
    ca = make_ca(folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    return {
        "good.test": server_tls(folder, ca, "good.test"),
        "expired.test": server_tls(folder, ca, "expired.test", -1),
        "wrong-name.test": server_tls(folder, ca, "another.test"),
        "self-signed.test": _self_signed(folder, "self-signed.test"),
        "unknown.test": server_tls(elsewhere, make_ca(elsewhere), "unknown.test"),
        "own.test": _self_signed(folder, "own.test"),
    }


@contextlib.contextmanager
def tls_web(folder: Path) -> Iterator[TlsWeb]:
    """Serve every host of ``HOSTS``, each under its own certificate, chosen by the name that the client asks for."""
    folder.mkdir()
    sock = listening_socket(0)
    port: int = sock.getsockname()[1]
    world = World(port)
    for name in HOSTS:
        site = world.site(name)
        site.pages["/robots.txt"] = Page(answer(b"User-agent: *\nDisallow:\n", kind="text/plain"))
        site.pages["/"] = Page(answer(page_html(name, ["/page"])))
        site.pages["/page"] = Page(answer(page_html(f"{name} page")))
    (folder / "hosts").write_text(world.hosts_file())
    (folder / "seeds.txt").write_text("".join(f"https://{name}:{port}/\n" for name in HOSTS))
    contexts = _contexts(folder)
    front = contexts["good.test"]

    def choose(connection: Any, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = contexts.get(name or "", context)

    front.sni_callback = choose
    log = ServerLog(folder / "server.jsonl")
    web = Web(world.sites, log)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: Visitor(web), sock=sock, ssl=front))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield TlsWeb(folder, port)
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        log.close()
