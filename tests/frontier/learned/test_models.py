"""What is learned of hosts reaches the store whatever happens to a commit, and goes where its host goes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import crawlerproject
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.duplicates import Duplicate, DuplicateIndex, NearBits
from crawlerproject.frontier.learned.models import BadCertificate, BadCertificates, CrawlModels, TrapModel, stored_fact
from crawlerproject.frontier.passage import Visit
from crawlerproject.frontier.politeness import QuietHours
from crawlerproject.reasons import Reason
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.revisits.history import NEW_HOST, History
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_RECRAWL, FLAG_RENDER, FLAG_ROBOTS
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, HostFact, PageRecord, QueuedPage, host_of_fact
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

HOST = "a.example"
HOSTS = 20  # of a domain: enough for its counts to be kept
NAMES = 100  # that a domain named: the same


def row(url: str, flags: int = 0) -> QueuedPage:
    """A page's row."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 2, 1, 0, "L", "http://via.example/", 0, flags)


class NoTotals:
    """Nothing was done."""

    def facts(self) -> list[tuple[str, bytes]]:
        """None."""
        return []

    def stored(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Of a commit."""


def models_of(store: MemoryStore) -> CrawlModels:
    """Those of a crawl."""
    duplicates, frontier = DuplicateIndex(store, NearBits(3, 3)), Bench(store).frontier
    frontier.quiet_hours = QuietHours(store)
    return CrawlModels(frontier, TrapModel(store), BadCertificates(store), duplicates, NoTotals())


def teach(learned: CrawlModels, store: MemoryStore) -> None:
    """Something for each of them, about one host."""
    url = f"https://{HOST}/"
    history = History(visits=1, seen_at=1.0).pack()
    store.apply(Changes(pages=[(parse(url).key, PageRecord(url, "fetched", 200, 1.0, b"d", '"1"', "", history))]))
    for number in range(HOSTS):
        learned.domains.taken_up(f"h{number}.{HOST}")
    for number in range(NAMES):
        learned.names.names(Host(f"www.{number}.example", 5.0), HOST, 10.0)
    next(model for model in learned.of_hosts if isinstance(model, QuietHours)).changed(HOST).learn(10.0, 0.1)
    visits = (
        Visit(row(url), Reason.TLS_CERTIFICATE, error="expired"),
        Visit(row(url), Reason.FETCHED, 200, b"d" * 20),
        Visit(row(url + "x", FLAG_EXTERNAL), Reason.FETCHED, 200, b"e" * 20),
        Visit(row(url, FLAG_RENDER), Reason.RENDERED, marks=(1,), gained=(9, 9)),
    )
    for visit in visits:
        learned.learn(visit, 10.0)
    learned.traps.learn_requisite(Visit(row(url + "a.css"), Reason.FETCHED, 200, b"f" * 20), wanted=True)
    learned.revisits.learn(Visit(row(url, FLAG_RECRAWL), Reason.FETCHED, 200, b"d", etag='"1"'), 10.0)


def test_facts_of_a_commit_that_failed_are_in_the_next() -> None:
    """Of every learner; once they are stored they are not stored again."""
    store = MemoryStore()
    learned = models_of(store)
    teach(learned, store)
    failed = learned.facts()

    assert all(model.unstored() for model in learned.of_hosts)
    assert learned.facts() == failed
    assert all(model.facts() for model in learned.of_hosts)
    learned.stored(Changes(), [])
    assert (learned.facts(), learned.unstored()) == ([], set())


def test_what_changes_during_a_commit_is_in_the_next() -> None:
    """The end of that commit does not take it for stored."""
    store = MemoryStore()
    learned = models_of(store)
    teach(learned, store)
    learned.facts()
    teach(learned, store)
    learned.stored(Changes(), [])

    assert {kind for name, _ in learned.facts() for kind in HostFact if name.startswith(kind)} >= {
        HostFact.TRAPS, HostFact.CERTIFICATE, HostFact.RENDERS, HostFact.VISITS, HostFact.DOMAIN,
    }  # fmt: skip


def test_a_later_process_knows_what_was_stored() -> None:
    """As the one that learned it."""
    store = MemoryStore()
    learned = models_of(store)
    teach(learned, store)
    store.apply(Changes(facts=learned.facts()))

    later = models_of(store)

    assert later.certificates.of(HOST) == BadCertificate("expired", 10.0)
    assert later.revisits.of(HOST).trust == learned.revisits.of(HOST).trust != NEW_HOST
    assert later.domains.of(HOST).hosts == HOSTS
    assert later.names.of(HOST).unresolved == NAMES
    assert later.renders.of(HOST).gains.keys() == learned.renders.of(HOST).gains.keys()


def test_facts_of_a_host_move_with_its_partition() -> None:
    """Each kind is a ``HostFact``, which stores/rocks/partition_rows.py gives to the partition; none lacks."""
    store = MemoryStore()
    learned = models_of(store)
    teach(learned, store)
    of_hosts = [name for name, _ in learned.facts() if HOST in name]

    kinds = {kind for kind in HostFact if any(name.startswith(kind) for name in of_hosts)}
    assert kinds == set(HostFact) - {HostFact.ROBOTS_SENT}  # which goes with the change that holds the redirect
    assert {partition_of(host_of_fact(name), 256) for name in of_hosts} == {partition_of(HOST, 256)}


def test_names_of_facts_are_made_of_their_kinds() -> None:
    """What the frontier asks the store for, when the name is computed, is a kind and a key."""
    asked = []
    for path in sorted((Path(crawlerproject.__file__).parent / "frontier").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fact":
                asked += [ast.unparse(name) for name in node.args if not isinstance(name, ast.Name)]

    names = ["HostFact.ROBOTS_SENT + sender", "kind + key", "self._kind + host", "self._kind + key"]
    assert sorted(set(asked)) == names


@pytest.mark.parametrize("place", range(9))
def test_another_workers_hosts_are_forgotten(place: int) -> None:
    """A partition that comes back is known as its last worker stored it, not as it was here before."""
    store = MemoryStore()
    learned = models_of(store)
    teach(learned, store)
    model = learned.of_hosts[place]
    model.facts()
    model.stored(Changes(), [])
    known = model.of(HOST)

    learned.forget(lambda host: host != HOST)

    assert model.of(HOST) is not known
    assert len(learned.of_hosts) == 9


def test_a_mended_certificate_is_forgotten() -> None:
    """A robots.txt that was answered over TLS says so; the note is stored as taken back."""
    store = MemoryStore()
    certificates = BadCertificates(store)
    url = f"https://{HOST}/robots.txt"
    certificates.learn(Visit(row(url), Reason.TLS_CERTIFICATE, error="expired"), 1.0)
    store.apply(Changes(facts=certificates.facts()))
    certificates.stored(Changes(), [])
    certificates.learn(Visit(row(url), Reason.FETCHED, 200), 2.0)  # a page tells nothing
    assert certificates.facts() == []

    certificates.learn(Visit(row(url, FLAG_ROBOTS), Reason.FETCHED, 200), 2.0)
    store.apply(Changes(facts=certificates.facts()))

    assert stored_fact(store, HostFact.CERTIFICATE, BadCertificate, HOST) == BadCertificate()
    assert certificates.facts() == [(f"certificate/{HOST}", b"")]


@pytest.mark.parametrize("flags", [0, FLAG_RENDER])
def test_a_page_that_repeats_another_is_no_news_of_its_domain(flags: int) -> None:
    """Neither as it came nor as the browser shows it: a farm that copies one page has no more hosts for it."""
    learned = models_of(MemoryStore())
    reason, status = (Reason.RENDERED, None) if flags else (Reason.FETCHED, 200)
    copied = Visit(row(f"https://{HOST}/copy", flags), reason, status, marks=(1, 2))
    copied.duplicate = Duplicate("near", "https://b.example/")
    learned.learn(copied, 1.0)
    assert learned.domains.of(HOST).pages == 0

    learned.learn(Visit(row(f"https://{HOST}/own", flags), reason, status, marks=(3, 4)), 2.0)
    assert learned.domains.of(HOST).pages == 1
