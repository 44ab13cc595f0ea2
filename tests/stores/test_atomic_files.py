"""A file that is written whole: what is left when its disk takes no more, and what is said of it."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.stores.atomic_files import StorageFull, whole_file, write_whole

ROOM_BYTES = 4096


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file of this process can be larger (setrlimit(2)), as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("little_room")
def test_without_room_the_old_file_stays(tmp_path: Path) -> None:
    """And nothing beside it; the sentence names the file."""
    target = tmp_path / "report.html"
    target.write_text("old")

    with pytest.raises(StorageFull, match=f"{target}"):
        write_whole(target, bytes(2 * ROOM_BYTES))

    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(target, "old")]


@pytest.mark.usefixtures("little_room")
def test_an_error_of_writing_names_the_file(tmp_path: Path) -> None:
    """The system does not: of several disks the operator has to know which one is full."""
    with pytest.raises(OSError) as caught, whole_file(tmp_path / "x.wacz") as file:
        file.write(bytes(2 * ROOM_BYTES))
        file.flush()

    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "x.wacz"))
