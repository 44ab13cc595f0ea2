"""Redis behind sentinels: found by its master's name, followed through a failover, asked with TLS and passwords."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.printable import without_passwords
from crawlerproject.stores.redis.connection import RedisLink, missing_server
from crawlerproject.stores.redis.journals import PartitionJournals
from tests.fetch.servers import make_ca, server_tls
from tests.stores.redis_crawls import LEASE_MS, add, added, opened
from tests.stores.redis_servers import RedisServer, redis_server, sentinel
from tests.web.ports import free_port
from tests.web.waiting import wait_until

# How long a master is silent before its sentinels take it for dead: short, so that the test need not wait.
_DOWN_MS = 500
_SECONDS = 30.0


def written(store: PartitionJournals, number: int) -> bool:
    """Whether the change could be added to a journal."""
    try:
        add(store, number)
    except StorageError:
        return False
    return True


def test_a_failover_by_sentinels_goes_on(tmp_path: Path) -> None:
    """The master is killed: its sentinels make the replica master, and nothing but time is lost."""
    with contextlib.ExitStack() as stack:
        at_once = ("--repl-diskless-sync-delay", "0")
        master = stack.enter_context(redis_server(tmp_path / "1", *at_once))
        replica = stack.enter_context(redis_server(tmp_path / "2", *at_once, "--replicaof", f"127.0.0.1 {master.port}"))
        config = [
            f"sentinel monitor ours 127.0.0.1 {master.port} 2",
            f"sentinel down-after-milliseconds ours {_DOWN_MS}",
            "sentinel failover-timeout ours 3000",
        ]
        places = [stack.enter_context(sentinel(tmp_path / f"s{number}", *config)) for number in range(3)]
        for place in places:
            place.until_it_knows("ours", replicas=1, sentinels=2)
        hosts = ",".join(f"127.0.0.1:{place.port}" for place in places)
        store = opened(f"redis+sentinel://{hosts}/ours/0")
        add(store, 1)
        wait_until(lambda: store.link.call("WAIT", [], 1, 1000), "replicated", seconds=_SECONDS)

        master.stop(kill=True)
        places[0].stop(kill=True)  # the others are enough
        assert not written(store, 2)
        wait_until(lambda: written(store, 2), "written to a new master", seconds=_SECONDS)

        assert added(store) == [b"1", b"2"]
        assert store.renew(LEASE_MS) == []
        assert store.link.call("CONFIG", [], "GET", "port") == {b"port": str(replica.port).encode()}
        store.close()
        replica.stop(kill=True)  # in good order it would wait for whom it followed


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A master and a sentinel that speak TLS only and want passwords, each another: place, authority's file."""
    ca = make_ca(tmp_path)
    server_tls(tmp_path, ca, "127.0.0.1", 5)
    [pem] = tmp_path.glob("127.0.0.1*.pem")
    port, asked = free_port(), free_port()
    tls = ["--tls-cert-file", str(pem), "--tls-key-file", str(pem), "--tls-ca-cert-file", ca[2]]
    tls += ["--tls-auth-clients", "no"]
    config = [
        f"sentinel monitor ours 127.0.0.1 {port} 1",
        "sentinel auth-pass ours sesame",
        "requirepass other",
        f"tls-port {asked}",
        "tls-replication yes",
        *(f"{name.removeprefix('--')} {value}" for name, value in zip(tls[::2], tls[1::2], strict=True)),
    ]
    with (
        redis_server(tmp_path / "redis", "--tls-port", str(port), *tls) as server,
        sentinel(tmp_path / "sentinel", *config, password="other") as place,
    ):
        with contextlib.closing(RedisLink(server.url)) as link:
            link.call("CONFIG", [], "SET", "requirepass", "sesame")
        place.until_it_knows("ours")
        yield f"127.0.0.1:{asked}", ca[2]


def test_sentinels_have_a_password_of_their_own(secret: tuple[str, str]) -> None:
    """The master's stands where it always does; either one, when wrong, is said without being shown."""
    place, ca = secret
    end = f"@{place}/ours/0?ssl_ca_certs={ca}&sentinel_password="
    store = opened(f"rediss+sentinel://:sesame{end}other")
    assert written(store, 1)
    assert added(store) == [b"1"]
    store.close()
    for master, theirs in (("wrong", "other"), ("sesame", "wrong")):
        with pytest.raises(OperatorError) as refused:
            RedisLink(f"rediss+sentinel://:{master}{end}{theirs}")
        assert "wrong" not in str(refused.value)


@pytest.mark.parametrize("url", ["redis+sentinel://127.0.0.1:1", "redis+sentinel:///ours", "redis+sentinel://a:b/ours"])
def test_a_url_that_says_too_little_is_one_sentence(url: str) -> None:
    """Sentinels and the name of the master are both needed, and a port is a number."""
    with pytest.raises(OperatorError, match="cannot be read"):
        RedisLink(url)


def test_sentinels_that_know_no_master_are_said(server: RedisServer) -> None:
    """Nobody there, or a server that is no sentinel."""
    for port, said in ((1, "No master found for 'ours'"), (server.port, "unknown command 'SENTINEL'")):
        with pytest.raises(OperatorError, match=f"cannot be used .{said}"):
            RedisLink(f"redis+sentinel://127.0.0.1:{port}/ours")


def test_no_password_is_shown() -> None:
    """Wherever it stands in the URL."""
    shown = without_passwords("rediss+sentinel://me:one@h:1,i:2/ours/0?sentinel_password=two&password=three&x=4")

    assert shown == "rediss+sentinel://me:***@h:1,i:2/ours/0?sentinel_password=***&password=***&x=4"


HERE = "redis://localhost:6379/0"
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\n"
FEDORA = "NAME=Fedora\nID=fedora\n"
RHEL = 'ID="rhel"\nID_LIKE="fedora"\n'


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with neither Redis nor Valkey."""
    monkeypatch.setattr("crawlerproject.stores.redis.connection.shutil.which", lambda program: None)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("release", "platform", "command"),
    [
        (DEBIAN, "linux", "sudo apt install redis-server"),
        (UBUNTU, "linux", "sudo apt install redis-server"),
        (FEDORA, "linux", "sudo dnf install valkey && sudo systemctl start valkey"),
        (RHEL, "linux", "sudo dnf install valkey && sudo systemctl start valkey"),
        ("", "darwin", "brew install redis && brew services start redis"),
        ("ID=nixos\n", "linux", "your system's packages"),
    ],
)
def test_the_command_is_the_systems(release: str, platform: str, command: str) -> None:
    """By os-release."""
    assert command in missing_server(HERE, release, platform)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("url", ["redis://redis.example:6379/0", "redis+sentinel://localhost:26379/mymaster"])
def test_another_machine_is_not_ours_to_install(url: str) -> None:
    """Nor is it known where the masters of sentinels are."""
    assert missing_server(url) == ""


def test_a_server_that_is_there_is_to_be_started() -> None:
    """Tests need one, so it is installed here."""
    with pytest.raises(OperatorError, match=r"cannot be used .*; start it or correct STATE_URL"):
        RedisLink(f"redis://127.0.0.1:{free_port()}/0")


@pytest.mark.usefixtures("bare")
def test_a_start_says_it_in_one_sentence() -> None:
    """With what could not be reached."""
    with pytest.raises(OperatorError, match=r"cannot be used .*no Redis is installed on this machine: install one"):
        RedisLink(f"redis://127.0.0.1:{free_port()}/0")
