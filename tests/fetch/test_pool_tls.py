"""Connections over TLS: certificates, names, versions."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.fetch.pool import Pool
from crawlerproject.fetch.tls import Certificates, allowed_hosts, iana_cipher, make_context
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from tests.fetch.pools import GET, LIMITS, at, failing, pool_with
from tests.fetch.servers import answering, make_ca, ok, run, server_tls, serving


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, str]:
    """A certificate authority of our own."""
    return make_ca(tmp_path_factory.mktemp("ca"))


async def fetch_tls(tls: ssl.SSLContext, ca_file: str, host: str = "site.test") -> Wire:
    """One page over TLS, fetched twice; the second answer."""
    pool = pool_with(ca_file)
    try:
        async with answering(ok(), tls=tls) as server:
            await pool.fetch(at(server.port, host, tls=True), GET)
            return await pool.fetch(at(server.port, host, tls=True), GET)
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("version", "protocol"), [(ssl.TLSVersion.TLSv1_3, "tls/1.3"), (ssl.TLSVersion.TLSv1_2, "tls/1.2")]
)
def test_tls_facts(tmp_path: Path, ca: tuple[Any, Any, str], version: ssl.TLSVersion, protocol: str) -> None:
    """Version and cipher have the names that WARC asks for, on a kept connection as well."""
    tls = server_tls(tmp_path, ca, "site.test")
    tls.minimum_version = tls.maximum_version = version
    wire = run(fetch_tls(tls, ca[2]))
    assert wire.reused
    assert wire.protocols == ("http/1.1", protocol)
    assert wire.cipher is not None
    assert wire.cipher.startswith("TLS_")
    assert ("_WITH_" in wire.cipher) == (protocol == "tls/1.2")


def test_an_authority_that_does_not_say_what_its_key_is_for(tmp_path: Path) -> None:
    """As browsers do, we take it, whatever the Python: 3.13 and later would not by themselves."""
    ca = make_ca(tmp_path, to_the_letter=False)
    assert run(fetch_tls(server_tls(tmp_path, ca, "site.test"), ca[2])).status == 200


def test_address_as_name(tmp_path: Path, ca: tuple[Any, Any, str]) -> None:
    """https://127.0.0.1/ is verified by the certificate's IP address."""
    assert run(fetch_tls(server_tls(tmp_path, ca, "127.0.0.1"), ca[2], "127.0.0.1")).status == 200


@pytest.mark.parametrize(
    ("name", "days", "trusted", "kind"),
    [
        ("site.test", -1, True, "expired"),
        ("other.test", 5, True, "wrong-name"),
        ("site.test", 5, False, "unknown-issuer"),
    ],
)
def test_bad_certificates_are_never_accepted(
    tmp_path: Path, ca: tuple[Any, Any, str], name: str, days: int, trusted: bool, kind: str
) -> None:
    """Each has its kind in the detail, and no request is sent."""

    async def main() -> None:
        async with answering(ok(), tls=server_tls(tmp_path, ca, name, days)) as server:
            error = await failing(pool_with(ca[2] if trusted else ""), at(server.port, tls=True))
            assert error.reason == Reason.TLS_CERTIFICATE
            assert error.detail.startswith((kind, "incomplete-chain" if not trusted else kind))
            assert server.requests == []

    run(main())


def test_plain_server_on_the_tls_port() -> None:
    """What is no TLS at all is TLS_FAILED."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()

        async with serving(talk) as server:
            assert (await failing(pool_with(), at(server.port, tls=True))).reason == Reason.TLS_FAILED

    run(main())


@pytest.mark.parametrize("name", ["a" * 70 + ".test", ".test", "a..test"])
def test_names_tls_cannot_carry(name: str) -> None:
    """An impossible server name fails as TLS_FAILED, never as an error of ours."""

    async def main() -> None:
        async with answering() as server:
            assert (await failing(pool_with(), at(server.port, name, tls=True))).reason == Reason.TLS_FAILED

    run(main())


def test_an_allowed_host_is_taken_whatever_its_certificate(tmp_path: Path, ca: tuple[Any, Any, str]) -> None:
    """By name, or by name and port; no other host and no other port profits."""

    async def fetched(allowed: str) -> bool | str:
        async with answering(ok(), tls=server_tls(tmp_path, ca, "other.test", -1)) as server:
            hosts = allowed_hosts([allowed.format(port=server.port)])
            pool = Pool(LIMITS, Certificates("", hosts))
            try:
                return (await pool.fetch(at(server.port, tls=True), GET)).unverified
            except FetchError as error:
                return str(error.reason)
            finally:
                pool.close()

    assert run(fetched("Site.Test.")) is True
    assert run(fetched("site.test:{port}")) is True
    for other in ("site.test:1", "test", "www.site.test", "another.test"):
        assert run(fetched(other)) == "tls-certificate"


@pytest.mark.parametrize("entry", ["*", "*.test", "https://site.test", "site.test/x", "10.0.0.0/8"])
def test_patterns_are_no_single_hosts(entry: str) -> None:
    """The list cannot be used to switch verification off."""
    with pytest.raises(OperatorError, match="TLS_ALLOW_HOSTS"):
        allowed_hosts([entry])


def test_ca_file_must_be_readable(tmp_path: Path) -> None:
    """A wrong FETCH_CA_FILE is the operator's to mend."""
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for path in (wrong, tmp_path / "missing.pem"):
        with pytest.raises(OperatorError, match="FETCH_CA_FILE"):
            make_context(str(path))


def test_every_cipher_we_offer_has_its_iana_name() -> None:
    """OpenSSL's names for TLS 1.2 never reach the archive."""
    for cipher in make_context().get_ciphers():
        assert iana_cipher(cipher["name"]).startswith("TLS_")
    assert iana_cipher("ECDHE-RSA-AES128-GCM-SHA256") == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert iana_cipher("TLS_AES_128_GCM_SHA256") == "TLS_AES_128_GCM_SHA256"
    assert iana_cipher("GOST-X") == "GOST-X"
