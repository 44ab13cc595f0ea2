"""Asks the index of all workers' texts in batches, while the event loop goes on; pages wait for their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import orjson

from crawlerproject.errors import StorageError
from crawlerproject.fleet.questions import AT_A_TIME, GATHER_SECONDS, Questions
from crawlerproject.frontier.learned.models import Facts
from crawlerproject.stores.protocols import FactReader, Fingerprint, NearText, Text

# A page whose question has no answer by then is not known to repeat another one: it holds its host's turn (ours).
_PATIENCE_SECONDS = 2.0
# Texts that wait to be added while the index does not answer, the oldest of which are dropped; some 300 bytes each.
_MAX_WAITING = 10_000

_FACT = "texts"
"""Texts of committed pages that may not have been added yet."""


@dataclass(slots=True)
class _Batch:
    """One exchange with the index."""

    texts: list[Text]  # that it adds
    answered: bool = False


Question = tuple[int, "asyncio.Future[list[NearText]]"]


class TextQuestions:
    """For one event loop. What is added here is found here at once, and by other processes with the next batch."""

    def __init__(
        self,
        store: FactReader,
        exchange: Callable[[Sequence[Text], Sequence[int], int], Awaitable[list[list[NearText]]]],
        bits: int,
        count: Callable[[str], None],
    ) -> None:
        """``exchange``: as ``Coordinator.texts``; ``bits`` in which near texts may differ; ``count`` is called with
        what goes unasked or is dropped.
        """
        self._exchange = exchange
        self._bits = bits
        self._count = count
        self._asked: list[Question] = []
        self._stored = store.fact(_FACT) or b"[]"
        # An earlier process may not have come to add them.
        self._adding = [Text(value, bytes.fromhex(key), url) for value, key, url in orjson.loads(self._stored)]
        self._batches: list[_Batch] = []  # under way, and what was sent behind one that is
        self._away = False  # the index did not answer: what is to be added waits for the next question
        self._questions = Questions(self._once, lambda: bool(self._asked or (self._adding and not self._away)))

    async def near(self, made: Fingerprint) -> NearText | None:
        """The nearest text of another page, of those that were added before; None as well when no answer comes."""
        future: asyncio.Future[list[NearText]] = asyncio.get_running_loop().create_future()
        if not self._asked:
            self._be_patient()
        self._asked.append((made.value, future))
        self._start()
        found = await future
        # What was added here since the question was sent is in no answer.
        bits, value = self._bits, made.value
        near = [
            NearText(differ, text.key, text.url)
            for text in self._unknown()
            if (differ := (text.value ^ value).bit_count()) <= bits
        ]
        near += [each for each in found if each.bits <= bits]
        return min((each for each in near if each.key != made.key), default=None)

    def add(self, made: Fingerprint, url: str) -> None:
        """A page was archived that repeats no other."""
        self._adding.append(Text(made.value, made.key, url))
        if len(self._adding) > _MAX_WAITING:
            del self._adding[0]
            self._count("duplicates/unadded")
        self._start()

    def facts(self) -> Facts:
        """What the next commit stores."""
        waiting = [(text.value, text.key.hex(), text.url) for text in self._unknown()]
        packed = orjson.dumps(waiting)
        return [(_FACT, packed)] if packed != self._stored else []

    def stored(self, facts: Facts) -> None:
        """These facts are committed."""
        self._stored = dict(facts).get(_FACT, self._stored)

    def _unknown(self) -> list[Text]:
        """What may be in no answer yet."""
        return [text for batch in self._batches for text in batch.texts] + self._adding

    def _start(self) -> None:
        self._away = False
        self._questions.start()

    def _be_patient(self) -> None:
        """With all that will be asked together: a timer for each page would cost more than its question."""
        asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._give_up, self._asked)

    def _give_up(self, asked: Sequence[Question]) -> None:
        for _, future in asked:
            if not future.done():
                self._count("duplicates/unasked")
                future.set_result([])

    async def _once(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        asked, self._asked = self._asked, self._asked[AT_A_TIME:]
        del asked[AT_A_TIME:]
        if self._asked:
            self._be_patient()
        batch, self._adding = _Batch(self._adding), []
        self._batches.append(batch)
        answers: list[list[NearText]] = [[]] * len(asked)
        try:
            answers = await self._exchange(batch.texts, [value for value, _ in asked], self._bits)
        except StorageError:
            self._away = True
            batch.texts, self._adding = [], batch.texts + self._adding
            for _ in asked:
                self._count("duplicates/unasked")
        finally:
            batch.answered = True
            while self._batches and self._batches[0].answered:
                del self._batches[0]
            _answer(asked, answers)


def _answer(asked: Sequence[Question], answers: Sequence[list[NearText]]) -> None:
    for (_, future), found in zip(asked, answers, strict=True):
        if not future.done():
            future.set_result(found)
