"""redis-py's client for what STATE_URL names: a server, a cluster, or the master that sentinels agree on."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

_SENTINEL = "+sentinel"
SCHEMES = ("redis://", "rediss://", "unix://", f"redis{_SENTINEL}://", f"rediss{_SENTINEL}://")
_SENTINEL_PORT = 26379  # as redis.io has it
# Long enough for a server that writes its snapshot, short enough to stop fetching before a lease ends.
_ANSWER_SECONDS = 5.0
_CONNECT_SECONDS = 3.0


def make_client(url: str) -> Any:
    """A client for one server; behind sentinels it asks them at each new connection who is master now.

    Raises ValueError for a URL that says too little.
    """
    # The package takes a tenth of a second to import: only a crawl with its frontier in Redis spends it.
    from redis import Redis

    if urlsplit(url).scheme.endswith(_SENTINEL):
        return _master(url)
    return Redis.from_url(url, **_options())


def make_cluster_client(url: str) -> Any:
    """A client for the cluster that the server of this URL belongs to."""
    from redis.cluster import RedisCluster

    return RedisCluster.from_url(url, **_options())


def _master(url: str) -> Any:
    """``redis+sentinel://[:PASSWORD@]HOST[:PORT][,HOST[:PORT]]*/MASTER[/DB][?OPTIONS]``, as other clients write it.

    ``sentinel_username`` and ``sentinel_password`` are for the sentinels, all else is as in a URL of one server.
    """
    from redis import connection, sentinel

    parse: Any = connection.parse_url  # neither has types
    sentinels: Any = sentinel.Sentinel
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    master, _, database = parts.path.strip("/").partition("/")
    if not (hosts and master):
        raise ValueError("sentinels are named with their master: redis+sentinel://host:26379,host:26379/mymaster")
    options = dict(parse_qsl(parts.query))
    theirs = {
        name: options.pop(f"sentinel_{name}") for name in ("username", "password") if f"sentinel_{name}" in options
    }
    scheme = parts.scheme.removesuffix(_SENTINEL)
    common: dict[str, Any] = parse(f"{scheme}://{user}{at}/{database or 0}?{urlencode(options)}")
    if common.pop("connection_class", None) is not None:
        common["ssl"] = True
    of_sentinels = {name: value for name, value in common.items() if name not in ("username", "password", "db")}
    asked = sentinels(
        [_host_and_port(host) for host in hosts.split(",")],
        sentinel_kwargs={**_options(), **of_sentinels, **theirs},
        **_options(),
        **common,
    )
    return asked.master_for(unquote(master))


def _host_and_port(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    return parts.hostname or "localhost", parts.port or _SENTINEL_PORT


def _options() -> dict[str, Any]:
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return {
        "socket_timeout": _ANSWER_SECONDS,
        "socket_connect_timeout": _CONNECT_SECONDS,
        # Once more at once: a server that restarted leaves broken connections behind. Every script may be run twice.
        "retry": Retry(NoBackoff(), 1),
        "health_check_interval": 0,
    }
