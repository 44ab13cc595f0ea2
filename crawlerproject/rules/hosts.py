"""The key under which a host is known: its name, with the port only when it is not the scheme's default."""

from __future__ import annotations

from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def host_key(url: str) -> str:
    """Host key of an absolute URL; "" when it has no host or cannot be read."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if ":" in name:
        name = f"[{name}]"
    return name if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f"{name}:{port}"


def host_name(key: str) -> str:
    """Host name of a host key: the port, if any, taken off; brackets of an IPv6 address stay."""
    if ":" not in key or key.endswith("]"):
        return key
    return key.rpartition(":")[0]
