"""Whose a host is, what is sent to its worker, and what is spared since it was sent lately."""

from __future__ import annotations

from crawlerproject.fleet.link_exchange import LINKS_A_MESSAGE, FleetHosts, RecentlySentLinks
from crawlerproject.frontier.other_workers import Changed, Links, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_SEED
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes


class Hosts(FleetHosts):
    """A host's partition is its last digit; that of 1 is this worker's."""

    def __init__(self) -> None:
        super().__init__(lambda host: int(host.partition(".")[0][-1]))

    def posted(self) -> list[tuple[int, bytes]]:
        """What a commit sends, with the partitions that it is for."""
        changes = Changes()
        self.add_messages(changes)
        return changes.messages

    def mine(self, host: str) -> bool:
        """One partition's."""
        return self.partition(host) == 1


def test_links_go_in_full_messages_and_the_rest_with_the_commit() -> None:
    """Each to the holder of its host."""
    hosts, found = Hosts(), [link(f"http://site{1 + number % 2}.test/{number}") for number in range(300)]
    own, others = hosts.parted(found)
    assert (len(own), len(others)) == (150, 150)

    hosts.send_links([*others, link("http://site3.test/")])
    assert hosts.writing

    sizes = {(to, len(said.found)) for to, each in hosts.posted() if isinstance(said := unpack_message(each), Links)}
    assert sizes == {(2, LINKS_A_MESSAGE), (2, 50), (3, 1)}
    assert (hosts.writing, hosts.sole) == (False, False)


def test_word_of_own_changed_pages_stays() -> None:
    """That of others is sent, by partition."""
    hosts, pages = Hosts(), [(parse(f"http://site{number}.test/"), 5.0) for number in (1, 2, 3, 2)]

    assert hosts.send_changed(pages) == pages[:1]
    said = [(to, unpack_message(each)) for to, each in hosts.posted()]
    assert said == [(2, Changed([pages[1], pages[3]])), (3, Changed([pages[2]]))]


def link(url: str, via: str = "http://a.example/1", flags: int = FLAG_EXTERNAL) -> DiscoveredUrl:
    """A link."""
    return DiscoveredUrl(parse(url), 1, "L", via, 10, flags)


def test_what_was_sent_is_spared() -> None:
    """From other pages of the same domain too."""
    lately, one = RecentlySentLinks(), link("http://b.example/1")
    assert lately.unsent([one], 0.0) == [one]
    assert lately.unsent([one], 0.0) == [one]  # not sent yet
    lately.sent([one], 0.0)
    again = [link("http://b.example/1", via="http://a.example/2"), link("http://b.example/2")]
    assert lately.unsent(again, 0.0) == again[1:]


def test_what_its_worker_may_judge_otherwise_is_sent() -> None:
    """Another domain has a budget of its own; a seed passes where a link does not."""
    lately = RecentlySentLinks()
    lately.sent([link("http://b.example/1")], 0.0)
    others = [link("http://b.example/1", via="http://c.example/"), link("http://b.example/1", flags=FLAG_SEED)]
    assert lately.unsent(others, 0.0) == others


def test_it_forgets_by_number() -> None:
    """Two generations: what was sent before these is unknown."""
    lately, found = RecentlySentLinks(most=2), [link(f"http://b.example/{number}") for number in range(7)]
    for item in found:
        lately.sent([item], 0.0)
    assert lately.unsent(found, 0.0) == found[:3]


def test_it_forgets_by_time() -> None:
    """After two of its times at most: what a worker refused may be allowed by then."""
    lately, one, two = RecentlySentLinks(seconds=100.0), link("http://b.example/1"), link("http://b.example/2")
    lately.sent([one], 1000.0)
    assert lately.unsent([one], 1099.0) == []
    assert lately.unsent([one], 1101.0) == []
    lately.sent([two], 1150.0)
    assert lately.unsent([one, two], 1205.0) == [one]
    assert lately.unsent([one, two], 1310.0) == [one, two]
