"""Pages wait for the answer about other workers' texts, not for ever; what is added here is known here."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet import text_questions
from crawlerproject.fleet.text_questions import TextQuestions
from crawlerproject.stores.protocols import Changes, Fingerprint, NearText, Text
from tests.stores.memory_store import MemoryStore


class Index:
    """All texts in a list."""

    def __init__(self) -> None:
        self.texts: list[Text] = []
        self.batches: list[tuple[int, int]] = []  # texts added and questions of each
        self.away = ""
        self.free = threading.Event()  # answers wait for it
        self.free.set()

    async def ask(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """While the loop goes on."""
        return await asyncio.to_thread(self.exchange, added, values, bits)

    def exchange(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """As ``RocksTexts``."""
        self.free.wait(60)
        self.batches.append((len(added), len(values)))
        if self.away:
            raise StorageError(self.away)
        self.texts += added
        return [
            sorted(NearText((text.value ^ value).bit_count(), text.key, text.url) for text in self.texts)
            for value in values
        ]


def made(value: int, number: int) -> Fingerprint:
    """Of a page with this number."""
    return Fingerprint("a", value, bytes([number]) * 24)


@pytest.fixture
def index() -> Index:
    """Empty."""
    return Index()


def test_many_questions_are_one_call(index: Index) -> None:
    """What another process added is found; the page itself and what is too far away is not."""
    index.texts = [Text(0b11, b"1" * 24, "http://one/"), Text(0b1, b"2" * 24, "http://two/")]
    questions = TextQuestions(MemoryStore(), index.ask, 1, lambda name: None)

    async def ask() -> list[NearText | None]:
        asked = [(0, b"9"), (0b1, b"2"), (0b1, b"9"), (0xFF, b"9")]
        return await asyncio.gather(*(questions.near(Fingerprint("a", value, letter * 24)) for value, letter in asked))

    assert [near and (near.bits, near.url) for near in asyncio.run(ask())] == [
        (1, "http://two/"),
        (1, "http://one/"),
        (0, "http://two/"),
        None,
    ]
    assert index.batches == [(0, 4)]


def test_what_is_added_while_a_question_is_under_way_is_found(index: Index) -> None:
    """Two pages with one text that end at the same moment: the second repeats the first."""
    questions = TextQuestions(MemoryStore(), index.ask, 3, lambda name: None)

    async def both() -> tuple[NearText | None, NearText | None]:
        index.free.clear()
        first, second = asyncio.create_task(questions.near(made(5, 1))), asyncio.create_task(questions.near(made(5, 2)))
        while not questions._batches:
            await asyncio.sleep(0)
        questions.add(made(5, 1), "http://one/")  # another of this worker's
        index.free.set()
        return await first, await second

    first, second = asyncio.run(both())
    assert first is None  # its own
    assert second == NearText(0, bytes([1]) * 24, "http://one/")


def test_an_answer_that_does_not_come_holds_no_page(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some time the page is not known to repeat another; counted."""
    monkeypatch.setattr(text_questions, "_PATIENCE_SECONDS", 0.05)
    counted = Counter[str]()
    questions = TextQuestions(MemoryStore(), index.ask, 3, lambda name: counted.update([name]))
    index.texts = [Text(5, b"1" * 24, "http://one/")]
    index.free.clear()

    async def ask() -> NearText | None:
        try:
            return await questions.near(made(5, 2))
        finally:
            index.free.set()

    assert asyncio.run(ask()) is None
    assert counted == {"duplicates/unasked": 1}


def test_what_could_not_be_added_goes_with_the_next(index: Index) -> None:
    """Known here all the while; an index that is away answers nothing."""
    counted = Counter[str]()
    questions = TextQuestions(MemoryStore(), index.ask, 3, lambda name: counted.update([name]))

    async def crawl() -> None:
        index.away = "gone"
        questions.add(made(5, 1), "http://one/")
        assert await questions.near(made(4, 2)) == NearText(1, bytes([1]) * 24, "http://one/")
        assert await questions.near(made(0xFF, 2)) is None
        index.away = ""
        assert await questions.near(made(0xFF, 2)) is None

    asyncio.run(crawl())
    assert index.texts == [Text(5, bytes([1]) * 24, "http://one/")]
    assert counted == {"duplicates/unasked": 2}


def test_what_was_committed_and_not_added_is_added_by_the_next_process(index: Index) -> None:
    """Part of the commit; of too many the oldest are dropped, and counted."""
    store, counted = MemoryStore(), Counter[str]()

    def made_anew() -> TextQuestions:
        return TextQuestions(store, index.ask, 3, lambda name: counted.update([name]))

    def commit(questions: TextQuestions) -> int:
        facts = questions.facts()
        store.apply(Changes(facts=facts))
        questions.stored(facts)
        return len(facts)

    async def crawl() -> list[int]:
        questions = made_anew()
        commits = [commit(questions)]
        index.away = "gone"
        for number in range(3):
            questions.add(made(2**64 - 1 - number, number), f"http://{number}/")
        commits += [commit(questions), commit(questions)]
        index.away = ""
        later = made_anew()
        await later.near(made(0, 9))
        return [*commits, commit(later), commit(later)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_questions, "_MAX_WAITING", 2)
        assert asyncio.run(crawl()) == [0, 1, 0, 1, 0]
    assert [text.url for text in index.texts][:2] == ["http://1/", "http://2/"]
    assert counted == {"duplicates/unadded": 1}
