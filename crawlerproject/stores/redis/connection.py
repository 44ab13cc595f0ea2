"""The connection to Redis: many calls in one round trip, every trouble as one sentence, what we need of the server.

redis-py's client for what STATE_URL names: a server, a cluster, or the master that sentinels agree on.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.printable import without_passwords
from crawlerproject.stores.redis.scripts import Script

# Redis 7.0 is the first with function-free script flags and listpacks that we measured with; Valkey 7.2 says 7.2.4.
_LEAST_VERSION = (7, 0)
# Calls in one round trip: bounds the memory that one reply takes on either side.
_AT_ONCE = 2000
_HERE = frozenset({"localhost", "127.0.0.1", "::1", None})
_PROGRAMS = ("redis-server", "valkey-server")
_OS_RELEASE = Path("/etc/os-release")  # os-release(5)
# By ID or ID_LIKE of os-release. Fedora has Valkey in Redis's place since its release 41.
_COMMANDS = {
    "debian": "sudo apt install redis-server",
    "fedora": "sudo dnf install valkey && sudo systemctl start valkey",
    "macos": "brew install redis && brew services start redis",
}


class Call(NamedTuple):
    """One script to be run, or one plain command (``name`` its word)."""

    name: Script | str
    keys: Sequence[str | bytes]
    arguments: Sequence[Any] = ()


class Evicted(NamedTuple):
    """What one server has thrown away since it began."""

    keys: int
    uptime_seconds: int


class RedisLink:
    """One server or one cluster. Safe to use from several threads."""

    def __init__(self, url: str) -> None:
        """Connect and check. Raises OperatorError with what to mend."""
        self.place = without_passwords(url)
        client: Any = None
        try:
            client = make_client(url)
            info = client.info()
            _check(self.place, client, info)
            self.cluster = info.get("redis_mode") == "cluster"
            if self.cluster:
                client.close()
                client = make_cluster_client(url)
        except (_redis_error(), OSError, ValueError) as error:
            raise OperatorError(_opening(self.place, error, url)) from error
        self.round_trips = 0  # since the start, a pipeline as one
        self._client = client

    def call(self, name: Script | str, keys: Sequence[str | bytes] = (), *arguments: Any) -> Any:
        """One call, one round trip. Raises StorageError."""
        return self.many([Call(name, keys, arguments)])[0]

    def many(self, calls: Sequence[Call]) -> list[Any]:
        """All calls in as few round trips as possible, in order for each key. Raises StorageError."""
        return self._many(calls, self._at_once)

    def whole(self, calls: Sequence[Call]) -> list[Any]:
        """As ``many``, on one server: of some 2,000 calls it takes all or none. One that is full refuses them all."""
        return self._many(calls, partial(self._at_once, whole=len(calls) > 1))

    def _many(self, calls: Sequence[Call], at_once: Callable[[Sequence[Call]], list[Any]]) -> list[Any]:
        results: list[Any] = []
        try:
            for start in range(0, len(calls), _AT_ONCE):
                results += at_once(calls[start : start + _AT_ONCE])
        except (_redis_error(), OSError) as error:
            raise StorageError(_trouble(self.place, error)) from error
        return results

    def evicted(self) -> dict[str, Evicted]:
        """By run id what each server has thrown away; of a cluster all its masters. StorageError."""
        nodes = {"target_nodes": "primaries"} if self.cluster else {}
        try:
            said = self._client.info("server", "stats", **nodes)
        except (_redis_error(), OSError) as error:
            raise StorageError(_trouble(self.place, error)) from error
        # Of several servers redis makes a dictionary of dictionaries.
        of_servers = said.values() if self.cluster and "evicted_keys" not in said else [said]
        return {
            str(each.get("run_id", "")): Evicted(
                int(each.get("evicted_keys", 0)), int(each.get("uptime_in_seconds", 0))
            )
            for each in of_servers
        }

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _at_once(self, calls: Sequence[Call], *, whole: bool = False) -> list[Any]:
        self.round_trips += 1
        pipe = self._client.pipeline(transaction=whole)
        for call in calls:
            # A cluster's pipeline refuses EVALSHA: it could not load a script that one of its nodes lacks.
            _put(pipe, call, whole=self.cluster)
        results: list[Any] = pipe.execute(raise_on_error=False)
        missing = [index for index, result in enumerate(results) if "NoScriptError" in type(result).__name__]
        if missing:
            del results[missing[0] :]  # what follows may be about what it does
            pipe = self._client.pipeline(transaction=whole)
            for call in calls[len(results) :]:
                _put(pipe, call, whole=True)
            results += pipe.execute(raise_on_error=False)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results


def _put(pipe: Any, call: Call, *, whole: bool) -> None:
    name = call.name
    if isinstance(name, str):
        pipe.execute_command(name, *call.keys, *call.arguments)
    elif whole:
        pipe.execute_command("EVAL", name.text, len(call.keys), *call.keys, *call.arguments)
    else:
        pipe.execute_command("EVALSHA", name.sha, len(call.keys), *call.keys, *call.arguments)


def _redis_error() -> type[Exception]:
    from redis.exceptions import RedisError

    return RedisError


def _check(place: str, client: Any, info: dict[str, Any]) -> None:
    """What a crawl needs of a server. Kvrocks and others may lack an answer: what is not said is not refused."""
    version = str(info.get("redis_version", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if "kvrocks_version" not in info and numbers and numbers < _LEAST_VERSION:
        raise OperatorError(f"{place} is Redis {version}; use version 7.0 or later.")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise OperatorError(
            f"{place} throws keys away when its memory is full (maxmemory-policy {policy}), and with them pages; "
            "set maxmemory-policy noeviction."
        )
    if info.get("role") == "slave" and info.get("slave_read_only", 1) == 1:
        raise OperatorError(f"{place} is a read-only replica; give STATE_URL the address of its master.")


def _opening(place: str, error: Exception, url: str) -> str:
    text = str(error)
    refused = ("AuthenticationError", "AuthorizationError")
    if type(error).__name__ in refused or "NOAUTH" in text or "WRONGPASS" in text:
        return f"{place} wants another password ({text}); write it into STATE_URL: redis://:PASSWORD@host:6379/0."
    if isinstance(error, ValueError):
        return f"STATE_URL {place} cannot be read ({text}); for example redis://localhost:6379/0."
    missing = missing_server(url) if type(error).__name__ == "ConnectionError" else ""
    return f"{place} cannot be used ({text}); {missing or 'start it'} or correct STATE_URL."


def _trouble(place: str, error: Exception) -> str:
    text = str(error) or type(error).__name__
    if "OOM" in text or "'maxmemory'" in text:
        return f"{place} has no memory left (maxmemory); give it more"
    if "READONLY" in text or "ReadOnly" in type(error).__name__:
        return f"{place} is read-only now, a replica took its master's address"
    if "NOREPLICAS" in text:
        return f"{place} has too few replicas at hand to be written to (min-replicas-to-write)"
    if "NOAUTH" in text or "WRONGPASS" in text:
        return f"{place} wants another password ({text})"
    return f"{place} does not answer ({text})"


def missing_server(url: str, release: str | None = None, platform: str = sys.platform) -> str:
    """What is to be done where ``url`` means this machine and it has no server; "" for others.

    ``release`` is the text of os-release, by default this machine's.
    """
    parts = urlsplit(url)
    here = parts.scheme == "unix" or (parts.scheme in ("redis", "rediss") and parts.hostname in _HERE)
    if not here or any(map(shutil.which, _PROGRAMS)):
        return ""
    if release is None:
        release = _OS_RELEASE.read_text() if _OS_RELEASE.exists() else ""
    names = ["macos"] if platform == "darwin" else _names(release)
    command = next((_COMMANDS[name] for name in names if name in _COMMANDS), "")
    how = f"with {command}" if command else "from your system's packages (Redis 7 or Valkey)"
    return f"no Redis is installed on this machine: install one {how}"


def _names(release: str) -> list[str]:
    said: Mapping[str, str] = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
    return [word for name in ("ID", "ID_LIKE") for word in said.get(name, "").strip("\"' ").split()]


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
    # The package takes a tenth of a second to import: only a fleet over Redis spends it.
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
