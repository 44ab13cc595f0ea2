"""What is known of the crawl as a whole is with the right workers after partitions have moved."""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from crawlerproject.fleet.repartition.fact_rules import RULES, FactMove, joined
from crawlerproject.fleet.repartition.journal import PlanChange
from crawlerproject.frontier.other_workers import (
    Changed,
    Links,
    RobotsGiven,
    RobotsWanted,
    pack_message,
    unpack_message,
)
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_folders import FleetPlan, alone, shared_out
from crawlerproject.stores.protocols import host_of_fact

PACKAGE = Path(__file__).parents[3] / "crawlerproject"
NAMED = re.compile(r'^_?[A-Z_]*FACT(?:: [A-Za-z]+)? = "([^"]+)"', re.MULTILINE)
TWO = shared_out(alone(8), ["one", "two"])


def from_two(*workers: str) -> PlanChange:
    """Two workers' partitions go to these."""
    return PlanChange(TWO, shared_out(TWO, workers), ())


def test_every_fact_of_the_code_has_a_rule() -> None:
    """A new fact that no line decides about would be lost or counted twice: it is added to ``RULES``."""
    named = {name for path in PACKAGE.rglob("*.py") for name in NAMED.findall(path.read_text())}

    assert len(named) > 15
    assert {name for name in named if name not in RULES and not host_of_fact(name)} == set()


def test_counts_stay_where_they_are_or_go_to_the_first() -> None:
    """The sum over all workers is what it was; since when, the earliest."""
    known = {
        "one": {"totals": b"[10,1000,1,5.5]", "renders": b"2"},
        "two": {"totals": b"[7,700,0,3.5]", "renders": b"3"},
    }
    fewer = dict(joined(known, from_two("two")))
    more = dict(joined(known, from_two("one", "two", "three")))

    assert orjson.loads(fewer["two"]["totals"]) == [17, 1700, 1, 3.5]
    assert fewer["two"]["renders"] == b"5"
    assert more == {**known, "three": {}}


def test_what_all_know_is_put_together() -> None:
    """Seeds, scope and the latest moment of any of them are with everybody."""
    one = {"keys of the seeds": b"11111111" + b"22222222", "clock": b"9.5", "scope": b"a.example b.example"}
    one |= {"scope of the seeds": b'["host",["a.example"]]', "options of the seeds": b'{"u":"x"}'}
    two = {"keys of the seeds": b"22222222" + b"33333333", "clock": b"10.5", "scope": b"c.example\nb.example"}
    two |= {"scope of the seeds": b'["host",["b.example"]]', "scope of moved seeds": b'[["u","v"]]'}
    both = {
        "keys of the seeds": b"11111111" + b"22222222" + b"33333333",
        "clock": b"10.5",
        "scope": b"a.example\nb.example\nc.example",
        "scope of the seeds": b'["host",["a.example","b.example"]]',
        "options of the seeds": b'{"u":"x"}',
        "scope of moved seeds": b'[["u","v"]]',
    }
    assert dict(joined({"one": one, "two": two}, from_two("one", "three"))) == {"one": both, "three": both}


def test_subscriptions_are_one_workers() -> None:
    """The first has them, to whom hubs push; the same topic of two is one subscription."""
    known = {
        "one": {"websub": b'[["t1","hub1"]]', "websub-hubs": b'{"h1":1}'},
        "two": {"websub": b'[["t1","hub2"],["t2","hub2"]]', "websub-hubs": b'{"h2":2}'},
    }
    found = dict(joined(known, from_two("two", "one")))
    facts = dict(joined(known, from_two("one")))["one"]
    assert found["one"] == {"websub": b"[]", "websub-hubs": b"{}"}
    assert orjson.loads(found["two"]["websub-hubs"]) == {"h1": 1, "h2": 2}
    assert orjson.loads(facts["websub"]) == [["t1", "hub1"], ["t2", "hub2"]]
    assert orjson.loads(facts["websub-hubs"]) == {"h1": 1, "h2": 2}


def test_hosts_of_one_that_died_begin_as_after_a_crash() -> None:
    """Who gets any of them rests all; the others know that their hosts were asked by nobody since."""
    known = {"one": {"clean": b"1"}, "two": {"clean": b"0", "unsure-until": b"8.5"}}
    plan = FleetPlan(("one", "two", "three"), (0, 0, 0, 0, 2, 2, 1, 1))
    found = dict(joined(known, PlanChange(TWO, plan, ())))
    assert TWO.holders == (0, 0, 0, 0, 1, 1, 1, 1)
    assert {worker: facts["clean"] for worker, facts in found.items()} == {"one": b"1", "two": b"0", "three": b"0"}
    assert {facts["unsure-until"] for facts in found.values()} == {b"8.5"}


def test_a_crawl_that_was_not_begun_is_not_begun() -> None:
    """No worker ever opened it: the next start is its first."""
    found = dict(joined({"one": {"imported": b"1"}}, from_two("one", "two", "three")))
    assert all("clean" not in facts and facts["imported"] == b"1" for facts in found.values())


def test_a_fact_of_another_version_is_not_lost() -> None:
    """What no line decides about stays, or goes to the first."""
    known = {"one": {"new": b"x"}, "two": {"newer": b"y"}}
    assert dict(joined(known, from_two("one")))["one"] == {"new": b"x", "newer": b"y"}


def test_letters_go_to_the_holders_of_their_hosts() -> None:
    """Links of one letter may be for several workers; each is read by one, once."""
    change = from_two("two", "three")
    hosts = [f"h{number}.example" for number in range(12)]
    found = [DiscoveredUrl(parse(f"https://{host}/"), 1, "L", "https://a.example/", 1, 0) for host in hosts]
    wanted = RobotsWanted("https://h1.example", "https://h2.example/robots.txt", "PR", "https://h1.example/robots.txt")
    given = RobotsGiven("https://h3.example", 200, b"body", Reason.FETCHED, 1)
    changed = Changed([(parse(f"https://{host}/changed"), 5.5) for host in hosts])
    packed = [pack_message(each) for each in (Links(found[:9]), wanted, given, changed)]
    one = {"letters": b"2", "letters/0": b"", "letters/1": b"[" + b",".join(packed) + b"]"}
    two = {"letters": b"1", "letters/0": b"[" + pack_message(Links(found[9:])) + b"]"}
    links: dict[str, str] = {}
    others: dict[str, str] = {}
    announced = 0
    for worker, facts in joined({"one": one, "two": two}, change):
        for number in range(int(facts["letters"])):
            for each in orjson.loads(facts[f"letters/{number}"]):
                message = unpack_message(orjson.dumps(each))
                if isinstance(message, Changed):
                    assert {change.after.holder(address.host) for address, _ in message.pages} == {worker}
                    announced += len(message.pages)
                elif isinstance(message, Links):
                    assert not links.keys() & {item.address.host for item in message.found}
                    links |= {item.address.host: worker for item in message.found}
                else:
                    others[type(message).__name__] = worker
    assert announced == len(hosts)
    assert links == {host: change.after.holder(host) for host in hosts}
    assert others == {"RobotsWanted": change.after.holder(hosts[2]), "RobotsGiven": change.after.holder(hosts[3])}


def test_rules_name_what_they_join() -> None:
    """What all have, or one is given, is put together by a rule of its own where two may differ."""
    first = RULES["clean"].join
    assert {name for name, rule in RULES.items() if rule.move is not FactMove.STAYS and rule.join is first} == {
        "clean",
        "imported",
    }
