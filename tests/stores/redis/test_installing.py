"""A machine without a server is said to be one, with the command that mends it."""

from __future__ import annotations

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.installing import missing_server
from tests.web.ports import free_port

HERE = "redis://localhost:6379/0"
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\n"
FEDORA = "NAME=Fedora\nID=fedora\n"
RHEL = 'ID="rhel"\nID_LIKE="fedora"\n'


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with neither Redis nor Valkey."""
    monkeypatch.setattr("crawlerproject.stores.redis.installing.shutil.which", lambda program: None)


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
