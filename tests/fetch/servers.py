"""Real servers on loopback for the fetch tests: scripted answers, a proxy, certificates of our own."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

T = TypeVar("T")
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PAGE = b"<html><title>a page</title><p>hello</p></html>"


def run(coroutine: Coroutine[Any, Any, T], seconds: float = 20) -> T:
    """Run on the loop of the crawls; a hang is a failure."""

    async def bounded() -> T:
        return await asyncio.wait_for(coroutine, seconds)

    return uvloop.run(bounded())


def ok(body: bytes = PAGE, *headers: bytes) -> bytes:
    """A well-formed answer."""
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Server:
    """What a server of ``serving`` saw."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []


@asynccontextmanager
async def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that talks to each connection as ``talk`` says."""
    seen = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def answering(
    *pieces: bytes, close: bool = False, pause_seconds: float = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """A server that answers every request with ``pieces``, pausing between them."""
    server: Server

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            server.requests.append(await reader.readuntil(b"\r\n\r\n"))
            for number, piece in enumerate(pieces):
                if number:
                    await asyncio.sleep(pause_seconds)  # it is slow: that is what is tested
                writer.write(piece)
                await writer.drain()
            if close:
                return

    async with serving(talk, tls) as server:
        yield server


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end."""
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def make_ca(folder: Path, *, to_the_letter: bool = True) -> tuple[Any, Any, str]:
    """A certificate authority: key, certificate, path of its PEM file.

    Not ``to_the_letter``: it does not say what its key is for (RFC 5280, 4.2.1.3), as many do not.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if to_the_letter:
        unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
        others = dict.fromkeys((*unused, "encipher_only", "decipher_only"), False)
        signs = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **others)
        builder = builder.add_extension(signs, critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    path = folder / "ca.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return key, certificate, str(path)


def server_tls(folder: Path, ca: tuple[Any, Any, str], name: str, days: int = 5) -> ssl.SSLContext:
    """A server's TLS with a certificate for ``name`` that is valid for ``days`` from now (negative: expired)."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(ca[1].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=20))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca[0].public_key()), critical=False)
        .sign(ca[0], hashes.SHA256())
    )
    path = folder / f"{name}{days}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
