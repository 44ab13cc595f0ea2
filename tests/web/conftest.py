"""A synthetic web in this process, and a client that asks it for exact bytes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.__main__ import describe
from tests.web.client import Client
from tests.web.profiles.sites import small_world
from tests.web.server import listening_socket, serve


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The small profile, served by a thread for the module's tests."""
    folder: Path = tmp_path_factory.mktemp("web")
    sock = listening_socket(0)
    world = small_world(sock.getsockname()[1])
    describe(world, folder)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(serve(sock, world.sites, folder / "server.jsonl"))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield Client(world, folder)
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
