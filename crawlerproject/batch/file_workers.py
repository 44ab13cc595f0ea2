"""Files that do not depend on each other, each read in another process: if one dies, it costs the file it read."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from crawlerproject.errors import StorageError

Done = Callable[[int], None]
"""Called with the number of bytes read since the last call."""
Task = Callable[[Done], Any]
"""What is done with one file; it and its answer go through a pipe."""


class Lost(NamedTuple):
    """Why there is no answer of a file."""

    sentence: str


class _Answer(NamedTuple):
    message: Any


class _Worker(NamedTuple):
    process: SpawnProcess
    pipe: Connection


class FileWorkers:
    """At most so many processes, each of which reads one file after the other.

    Their start takes CPU (of ``scrapy process`` two seconds: libraries, the languages' model), so they wait for more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # Not forked: libraries below (Arrow) have threads of their own.
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[_Worker] = []

    def run(self, tasks: Iterable[tuple[Path, Task]], done: Done) -> Iterator[tuple[Path, Any]]:
        """The answer of each task, or Lost, as it ends; ``done`` takes the bytes that all of them have read."""
        todo, running = list(tasks), dict[Connection, tuple[_Worker, Path]]()
        self._idle = [worker for worker in self._idle if worker.process.is_alive()]
        try:
            while todo or running:
                while todo and len(running) < self._most:
                    worker = self._idle.pop() if self._idle else self._started()
                    file, task = todo.pop(0)
                    running[worker.pipe] = worker, file
                    with suppress(BrokenPipeError):  # it died while it waited, which is seen below
                        worker.pipe.send((file, task))
                for pipe in wait(list(running)):
                    assert isinstance(pipe, Connection)
                    worker, file = running[pipe]
                    try:
                        word: int | _Answer = pipe.recv()
                    except (EOFError, ConnectionResetError):  # it died without a word
                        worker.process.join()
                        del running[pipe]
                        status = worker.process.exitcode
                        yield file, Lost(f"{file.name} ended its process (exit status {status}); it is left out")
                        continue
                    if isinstance(word, int):
                        done(word)
                        continue
                    self._idle.append(running.pop(pipe)[0])
                    yield file, word.message
        finally:
            for worker, _ in running.values():
                worker.process.terminate()

    def close(self) -> None:
        """End those that wait."""
        for worker in self._idle:
            worker.pipe.close()
            worker.process.join()

    def _started(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)


def each_answer(tasks: Iterable[tuple[Path, Task]], workers: int, done: Done) -> Iterator[Any]:
    """The answers, by so many processes, this one included. Raises StorageError where a file has no answer."""
    todo = list(tasks)
    if min(workers, len(todo)) < 2:
        for _, task in todo:
            yield task(done)
        return
    with closing(FileWorkers(workers)) as processes:
        for _, answer in processes.run(todo, done):
            if isinstance(answer, Lost):
                raise StorageError(answer.sentence)
            yield answer


def _work(pipe: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's reaches both: the one that began this one ends it
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # that one has ended
        while True:
            file, task = pipe.recv()
            try:
                answer = task(pipe.send)
            except BrokenPipeError:
                raise
            except OSError as error:
                answer = Lost(f"{file.name}: {error.strerror or error}")
            except Exception as error:  # one file's fault must not end the others
                answer = Lost(f"{file.name} could not be processed ({type(error).__name__}: {error})")
            pipe.send(_Answer(answer))
