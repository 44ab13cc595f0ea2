"""Which hosts a worker of a local fleet decides about, by the plan; what it writes to the others with each commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.other_workers import Links, Message, pack_message
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.protocols import Changes

# Links in one message: a frame of 16 MB takes as many of the longest URLs that settings may allow.
_LINKS_A_MESSAGE = 100


class LocalHosts:
    """The ``HostOwnership`` of such a worker: the plan does not change while it runs."""

    doubt_seconds = 0.0  # one machine, one clock

    def __init__(self, plan: FleetPlan, worker: str, unsure_until: float = 0.0) -> None:
        """``unsure_until``: as ``frontier.ownership.unsure_until`` says."""
        self.partitions = plan.held(worker)
        self._of = plan.partitions
        self._unsure_until = unsure_until
        self._links: defaultdict[int, list[DiscoveredUrl]] = defaultdict(list)  # for the next commit, by partition
        self._packed: list[tuple[int, bytes]] = []  # as well

    @property
    def writing(self) -> bool:
        """Whether something waits for the next commit."""
        return bool(self._links or self._packed)

    def partition(self, host: str) -> int:
        """Of a host key."""
        return partition_of(host, self._of)

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host."""
        return partition_of(host, self._of) in self.partitions

    def may_ask(self, host: str) -> bool:
        """Whether the host is ours: then no other worker asks it in this run."""
        return self.mine(host)

    def crowded(self) -> bool:
        """What is decided is stored at once."""
        return False

    def unsure_until(self, host: str) -> float:
        """The start, when the run before did not end in good order."""
        return self._unsure_until

    def send(self, host: str, message: Message) -> None:
        """Write to the worker that decides about the host, with the next commit."""
        self.send_to(self.partition(host), message)

    def send_to(self, partition: int, message: Message) -> None:
        """As ``send``, to the worker that holds this partition."""
        self._packed.append((partition, pack_message(message)))

    def send_links(self, found: Iterable[DiscoveredUrl]) -> None:
        """As ``send``, each to its host's."""
        for item in found:
            partition = self.partition(item.address.host)
            links = self._links[partition]
            links.append(item)
            if len(links) == _LINKS_A_MESSAGE:
                self._packed.append((partition, pack_message(Links(links))))
                del self._links[partition]

    def add_messages(self, changes: Changes) -> None:
        """All that was written since, into the changes of a commit."""
        changes.messages += self._packed
        changes.messages += ((partition, pack_message(Links(links))) for partition, links in self._links.items())
        self._packed = []
        self._links.clear()
