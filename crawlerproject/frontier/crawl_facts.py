"""What all workers of a crawl together know of it, from the facts that each has in a frontier of its own."""

from __future__ import annotations

import orjson

from crawlerproject.frontier.admission import MOVES_FACT, SCOPE_FACT
from crawlerproject.frontier.known_seeds import COMBINED as _OF_SEEDS
from crawlerproject.frontier.learned.hubs import HUBS_FACT


def _every_host(kept: list[bytes]) -> bytes:
    return b"\n".join(dict.fromkeys(host for one in kept for host in one.split()))


def _every_move(kept: list[bytes]) -> bytes:
    return orjson.dumps(list(dict.fromkeys(tuple(move) for one in kept for move in orjson.loads(one))))


def _every_hub(kept: list[bytes]) -> bytes:
    hubs: dict[str, object] = {}
    for one in reversed(kept):
        hubs |= orjson.loads(one)
    return orjson.dumps(hubs)


COMBINED = {**_OF_SEEDS, SCOPE_FACT: _every_host, MOVES_FACT: _every_move, HUBS_FACT: _every_hub}
"""One value of a crawl-wide fact from those of several workers, of the first first. Any other fact is its worker's."""
