"""The hosts' fingerprints in memory: loaded once, grown with what is stored, forgotten when there is no room."""

from __future__ import annotations

from array import array

from crawlerproject.stores.rocks.rocks_texts import HostFingerprints


class Rows:
    """What a store holds, and how often it was asked."""

    def __init__(self) -> None:
        self.values: dict[str, list[int]] = {}
        self.loads: list[str] = []

    def load(self, host: str) -> array[int]:
        """As RocksStore reads them."""
        self.loads.append(host)
        return array("Q", self.values.get(host, []))


def test_a_host_is_loaded_once_and_grows() -> None:
    """Later fingerprints of a host in memory need no second look at the store."""
    rows = Rows()
    rows.values["a"] = [0b1111]
    kept = HostFingerprints(rows.load)

    assert kept.near("a", 0b1110, 1) == [(1, 0b1111)]
    kept.add("a", 0b1100)
    kept.add("b", 0b1100)

    assert kept.near("a", 0b1110, 1) == [(1, 0b1100), (1, 0b1111)]
    assert kept.near("b", 0b1100, 64) == []
    assert rows.loads == ["a", "b"]


def test_the_hosts_used_last_stay() -> None:
    """Beyond the room for hosts or for fingerprints the one that waited longest is read again when needed."""
    rows = Rows()
    rows.values = {"a": [1], "b": [2], "c": [3, 4, 5]}
    for limits in ({"max_hosts": 2}, {"max_fingerprints": 4}):
        rows.loads.clear()
        kept = HostFingerprints(rows.load, **limits)
        for host in ("a", "b", "a", "c", "a", "b"):
            assert {value for _, value in kept.near(host, 0, 64)} == set(rows.values[host])
        assert rows.loads == ["a", "b", "c", "b"]


def test_one_host_beyond_all_room_still_works() -> None:
    """The host in use is never thrown out."""
    rows = Rows()
    rows.values["a"] = [1, 2, 3]

    assert len(HostFingerprints(rows.load, max_fingerprints=1).near("a", 0, 64)) == 3
