"""TLS with verified certificates: the context, the words for what went wrong, the names for the archive."""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Collection
from typing import Any

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.reasons import Reason

_CERTIFICATE_KINDS = {  # OpenSSL's X509_V_ERR_* (x509_vfy.h) to the word an operator understands
    9: "not-yet-valid",
    10: "expired",
    18: "self-signed",
    19: "self-signed-in-chain",
    20: "unknown-issuer",
    21: "incomplete-chain",
    23: "revoked",
    62: "wrong-name",
    64: "wrong-name",
}

# The same on every Python: 3.13 also asks for RFC 5280 to the letter (VERIFY_X509_STRICT), which no browser does: pages
# would be lost that every browser shows. An authority that the operator names need not be a root.
_VERIFY_FLAGS = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN

# A name or an IP address, with a port or without; no pattern, no scheme.
_HOST = re.compile(r"(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_KEY_EXCHANGE = {"ECDHE-ECDSA": "ECDHE_ECDSA", "ECDHE-RSA": "ECDHE_RSA", "DHE-RSA": "DHE_RSA", "DHE-DSS": "DHE_DSS"}
_CIPHERS = {  # OpenSSL's end of a TLS 1.2 suite name to IANA's (tls-parameters registry)
    "AES128-GCM-SHA256": "AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "AES_256_GCM_SHA384",
    "AES128-CCM": "AES_128_CCM",
    "AES256-CCM": "AES_256_CCM",
    "AES128-CCM8": "AES_128_CCM_8",
    "AES256-CCM8": "AES_256_CCM_8",
    "CHACHA20-POLY1305": "CHACHA20_POLY1305_SHA256",
    "AES128-SHA256": "AES_128_CBC_SHA256",
    "AES256-SHA256": "AES_256_CBC_SHA256",
    "AES256-SHA384": "AES_256_CBC_SHA384",
    "AES128-SHA": "AES_128_CBC_SHA",
    "AES256-SHA": "AES_256_CBC_SHA",
    "ARIA128-GCM-SHA256": "ARIA_128_GCM_SHA256",
    "ARIA256-GCM-SHA384": "ARIA_256_GCM_SHA384",
    "CAMELLIA128-SHA256": "CAMELLIA_128_CBC_SHA256",
    "CAMELLIA256-SHA384": "CAMELLIA_256_CBC_SHA384",
}
# tcpi_bytes_received of Linux's struct tcp_info (linux/tcp.h, since 4.1).
_TCP_RECEIVED, _TCP_RECEIVED_AT, _TCP_INFO_BYTES = struct.Struct("=Q"), 128, 136
_TLS12_NAMES = {
    f"{prefix}-{end}" if prefix else end: f"TLS_{exchange}_WITH_{iana}"
    for prefix, exchange in (*_KEY_EXCHANGE.items(), ("", "RSA"))
    for end, iana in _CIPHERS.items()
}


def make_context(ca_file: str = "") -> ssl.SSLContext:
    """The one context of a crawl: the system's authorities, plus a PEM bundle of the operator's own (FETCH_CA_FILE)."""
    context = ssl.create_default_context()
    context.verify_flags = _VERIFY_FLAGS
    context.set_alpn_protocols(["http/1.1"])
    # Debian's Python offers suites for secrets that both sides know beforehand, too: no website has one with us.
    names = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    context.set_ciphers(":".join([name for name in names if "PSK" not in name and "SRP" not in name]))
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise OperatorError(f"FETCH_CA_FILE {ca_file!r} cannot be read as PEM certificates: {error}") from error
    return context


class Certificates:
    """Which TLS context a host is met with: verified, but for one's own test servers (TLS_ALLOW_HOSTS)."""

    def __init__(self, ca_file: str = "", allowed: Collection[str] = ()) -> None:
        """``ca_file`` as for ``make_context``; ``allowed`` are host names, lower-case, with a port or for every port.

        OperatorError for a file that cannot be read.
        """
        # The system's authorities take a fiftieth of a second to read: not before they are asked for.
        self._verified = make_context(ca_file) if ca_file else None
        self._allowed = frozenset(allowed)
        self._unverified = None
        if allowed:
            self._unverified = make_context()
            self._unverified.check_hostname = False
            self._unverified.verify_mode = ssl.CERT_NONE

    def allows(self, host: str, port: int) -> bool:
        """Whether the operator takes any certificate from this host."""
        allowed = self._allowed
        return bool(allowed) and (host in allowed or f"{host}:{port}" in allowed)

    def context(self, host: str, port: int) -> ssl.SSLContext:
        """The context for a connection to the host."""
        if self._unverified is not None and self.allows(host, port):
            return self._unverified
        if self._verified is None:
            self._verified = make_context()
        return self._verified


def allowed_hosts(listed: Collection[str]) -> list[str]:
    """TLS_ALLOW_HOSTS as ``Certificates`` wants it; OperatorError for what is not one host."""
    hosts = [host.strip().lower().rstrip(".") for host in listed if host.strip()]
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise OperatorError(
                f"TLS_ALLOW_HOSTS must list single hosts like test.example or test.example:8443, not {host!r}."
            )
    return hosts


def tls_error(error: Exception) -> FetchError:
    """What a failed handshake means; a bad certificate's detail starts with its kind ("expired: ...")."""
    if isinstance(error, ssl.SSLCertVerificationError):
        kind = _CERTIFICATE_KINDS.get(getattr(error, "verify_code", 0), "invalid")
        return FetchError(Reason.TLS_CERTIFICATE, f"{kind}: {getattr(error, 'verify_message', '') or error}")
    return FetchError(Reason.TLS_FAILED, getattr(error, "reason", None) or str(error) or type(error).__name__)


def tls_facts(transport: Any) -> tuple[tuple[str, ...], str | None]:
    """WARC-Protocol values and WARC-Cipher-Suite (IANA's name; OpenSSL's own where IANA's is not known)."""
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return ("http/1.1",), None
    version = (tls.version() or "").lower().replace("v", "/")
    if version == "tls/1":
        version = "tls/1.0"
    cipher = (tls.cipher() or (None,))[0]
    return ("http/1.1", version), iana_cipher(cipher) if cipher else None


def said_goodbye(transport: Any) -> bool:
    """Whether a connection whose end was announced ended by close_notify; without TLS there is no such word.

    asyncio announces the end of TCP as well (uvloop does not); only OpenSSL knows which of the two it was: after
    close_notify it reads nothing, else it would wait for more.
    """
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if tls is None:
        return True
    try:
        return not tls.read(1)
    except ssl.SSLZeroReturnError:  # we have sent one too
        return True
    except ssl.SSLError:
        return False


def tcp_bytes_received(transport: Any) -> int | None:
    """All bytes that the connection below TLS has taken in so far; None where the system does not count them."""
    connection = transport.get_extra_info("socket") if transport is not None else None
    if connection is None:
        return None
    try:
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return None
    return int(_TCP_RECEIVED.unpack_from(facts, _TCP_RECEIVED_AT)[0]) if len(facts) == _TCP_INFO_BYTES else None


def iana_cipher(name: str) -> str:
    """IANA's name for OpenSSL's: TLS 1.3 suites are named alike, older ones are not."""
    return _TLS12_NAMES.get(name, name)
