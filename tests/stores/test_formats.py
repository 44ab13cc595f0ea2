"""The table of formats says what is so."""

import ast
import importlib
from operator import attrgetter
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import FORMATS, CrawlDir
from crawlerproject.stores.migrations import MIGRATIONS
from tests.stores.format_history import PARTS, Change, How, Part

TESTS = Path(__file__).resolve().parents[1]
UPGRADES = (TESTS.parent / "docs" / "upgrades.md").read_text()
CHANGES = [change for part in PARTS for change in part.changes]


def named(place: str) -> object:
    """What ``module:name`` names in the crawler."""
    module, _, name = place.partition(":")
    return attrgetter(name)(importlib.import_module(f"crawlerproject.{module}"))


@pytest.mark.parametrize("part", [part for part in PARTS if part.constant], ids=lambda part: part.name)
def test_a_number_is_the_one_that_is_written(part: Part) -> None:
    """The constant of the code that writes it."""
    constant = named(part.constant)
    assert part.version == (constant[0] if isinstance(constant, bytes) else constant)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.before)
def test_what_reads_the_old_is_there_and_guarded(change: Change) -> None:
    """The reader and the test that are named."""
    assert named(change.by)
    file, _, test = change.guard.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_what_a_folder_records() -> None:
    """The parts that are recorded, with their versions."""
    assert {part.name: part.version for part in PARTS if part.recorded} == FORMATS


def test_each_migration_leads_to_a_version_of_its_part() -> None:
    """One after the other, up to the one that is written; what is called migrated has one."""
    for part in PARTS:
        steps = [each.version for each in MIGRATIONS if each.part == part.name]
        assert steps == sorted(set(steps))
        assert steps[-1:] in ([], [part.version])
        assert bool(steps) == any(change.how is How.MIGRATED for change in part.changes)
    assert {each.part for each in MIGRATIONS} <= FORMATS.keys()


def test_the_docs_have_what_operators_notice() -> None:
    """Each format that format.json records, and each change that is refused or migrated."""
    for part in PARTS:
        assert (f"| {part.name} | {part.version} | {part.what} |" in UPGRADES) is part.recorded
        assert all(isinstance(getattr(CrawlDir("a"), place), Path) for place in part.places)
        for change in part.changes:
            line = f"| {part.name} | {change.since} | {change.before} | {change.how} |"
            assert (line in UPGRADES) is (change.how in (How.REFUSED, How.MIGRATED))
