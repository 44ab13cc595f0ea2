"""A backup and a running crawl speak by files: an order counts while its command lives, an answer for that order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.backup.checkpoint_orders import Answer, Asking, OrdersHere, Stage
from crawlerproject.stores.crawl_dir import CrawlDir


@pytest.fixture
def folder(tmp_path: Path) -> CrawlDir:
    """A crawl's."""
    made = CrawlDir(tmp_path / "crawl")
    made.control.mkdir(parents=True)
    return made


@pytest.fixture
def asking(folder: CrawlDir) -> Iterator[Asking]:
    """A command that is under way."""
    with closing(Asking([folder])) as made:
        yield made


def test_an_order_is_answered(folder: CrawlDir, asking: Asking) -> None:
    """Each stage apart: what was answered to another stage, or to an earlier command, does not count."""
    here = OrdersHere(folder)
    assert here.current() is None

    asking.ask(Stage.HOLD)
    order = here.current()
    assert order is not None
    assert order.stage is Stage.HOLD
    here.answer(Answer("of another command", Stage.HOLD))
    assert asking.answers(Stage.HOLD) == {}
    here.answer(Answer(order.number, Stage.HOLD))
    assert list(asking.answers(Stage.HOLD)) == [folder]

    asking.ask(Stage.TAKE)
    assert asking.answers(Stage.TAKE) == {}
    here.answer(Answer(order.number, Stage.TAKE, closed=("a.warc.gz",)))
    assert asking.answers(Stage.TAKE)[folder].closed == ("a.warc.gz",)


def test_what_cannot_be_done_ends_the_command(folder: CrawlDir, asking: Asking) -> None:
    """With the reason that the crawl gives."""
    asking.ask(Stage.TAKE)
    here = OrdersHere(folder)
    order = here.current()
    assert order is not None
    here.answer(Answer(order.number, Stage.TAKE, "the disk is full"))

    with pytest.raises(OperatorError, match="cannot make a backup now: the disk is full"):
        asking.answers(Stage.TAKE)


def test_the_order_of_a_dead_command_is_removed(folder: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with it the checkpoint that nobody takes: its lock fell with the process."""
    asking = Asking([folder])
    asking.ask(Stage.TAKE)
    folder.frontier_checkpoint.mkdir()
    monkeypatch.setattr("crawlerproject.stores.backup.checkpoint_orders.is_locked", lambda path: False)

    assert OrdersHere(folder).current() is None
    assert not folder.frontier_checkpoint.exists()
    assert [path.name for path in folder.control.iterdir()] == ["backup.lock"]
    asking.close()


def test_a_torn_order_is_none(folder: CrawlDir, asking: Asking) -> None:
    """As of another version, or half written."""
    for text in (b"", b"{}", b'{"number": "1", "stage": "another"}'):
        (folder.control / "backup.json").write_bytes(text)
        assert OrdersHere(folder).current() is None


def test_a_second_command_is_refused(folder: CrawlDir, asking: Asking, tmp_path: Path) -> None:
    """And lets go of the folders that it had locked already."""
    other = CrawlDir(tmp_path / "other")
    other.mkdir()
    with pytest.raises(OperatorError, match="Another backup of"):
        Asking([other, folder])

    Asking([other]).close()


def test_all_is_taken_back_at_the_end(folder: CrawlDir) -> None:
    """Order, answer and checkpoint go."""
    with closing(Asking([folder])) as asking:
        asking.ask(Stage.TAKE)
        OrdersHere(folder).answer(Answer("1", Stage.TAKE))
        folder.frontier_checkpoint.mkdir()

    assert [path.name for path in folder.control.iterdir()] == ["backup.lock"]
