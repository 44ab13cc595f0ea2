"""``pytest --forks N``: N processes run the tests, forked off the one that has collected them.

pytest-xdist has each of its workers import and collect all of them anew: fifteen seconds of CPU each. A file is run by
one process, which gets the next as soon as it is at its last test. What is forked has temporary folders, captured
output and ports of its own. Reports go to the first process, and so do warnings; a process that dies is a failure of
the test that it ran, and another goes on behind that.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import signal
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import pytest

_LOOK_SECONDS = 1.0  # whether a process has died, whose own children keep its connection open
_REPORT, _WARNING, _BEGUN, _WANTS = range(4)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Without it, they run as they do without this plugin."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="processes, forked when the tests are collected")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """As pytest's own, which runs where there are no forks."""
    if not session.config.option.forks or session.config.option.collectonly or session.testsfailed:
        return None
    _Forks(session).run()
    return True


class _Process:
    """One that runs tests, as the first process sees it."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid, self.connection = pid, connection
        self.left = deque[int]()  # tests that it has been given and has not begun
        self.at: int | None = None  # the test that it runs

    def has_ended(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid


class _Forks:
    """The processes, and the files that none has been given."""

    def __init__(self, session: pytest.Session) -> None:
        self._session, self._config = session, session.config
        numbered = enumerate(session.items)
        files = groupby(numbered, key=lambda numbered: numbered[1].path)
        self._files = deque([number for number, _ in tests] for _, tests in files)
        self._folders = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self._processes = dict[int, _Process]()  # by their numbers, from 0

    def run(self) -> None:
        """Until all tests have run; pytest.Session.Failed when so many have failed as are wanted."""
        try:
            for number in range(min(self._config.option.forks, len(self._files))):
                self._fork(number, self._files.popleft())
            while self._processes:
                wait([process.connection for process in self._processes.values()], _LOOK_SECONDS)
                for number, process in list(self._processes.items()):
                    ended = process.has_ended()  # before all that it has sent is read
                    with contextlib.suppress(EOFError, ConnectionResetError):
                        while process.connection.poll():
                            self._take(process, *process.connection.recv())
                    if ended:
                        self._end(number)
        finally:
            for process in self._processes.values():
                os.kill(process.pid, signal.SIGTERM)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)

    def _fork(self, number: int, tests: Sequence[int]) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        if not (pid := os.fork()):
            for other in self._processes.values():
                other.connection.close()
            ours.close()
            _become_worker(self._session, theirs, number, self._folders / f"fork{number}", tests)
        theirs.close()
        self._processes[number] = process = _Process(pid, ours)
        process.left.extend(tests)

    def _take(self, process: _Process, kind: int, value: Any) -> None:
        if kind == _WANTS:
            file = self._files.popleft() if self._files and not self._session.shouldfail else []
            process.left.extend(file)
            process.connection.send(file)
        elif kind == _BEGUN:
            process.at = process.left.popleft()
            assert process.at == value
        elif kind == _WARNING:
            where, when, nodeid = value.pop("where"), value.pop("when"), value.pop("nodeid")
            message = warnings.WarningMessage(**value)
            self._config.hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": where}
            )
        else:
            self._log(self._config.hook.pytest_report_from_serializable(config=self._config, data=value))
            if value["when"] == "teardown":
                process.at = None

    def _log(self, report: pytest.TestReport) -> None:
        self._config.hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            self._config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    def _end(self, number: int) -> None:
        process = self._processes.pop(number)
        process.connection.close()
        if process.at is not None:
            item = self._session.items[process.at]
            said = "The process that ran this test has died."
            self._log(pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call"))
        left = [*process.left] or (self._files.popleft() if self._files else [])
        if left and not self._session.shouldfail:
            self._fork(number, left)


# --- What is forked --------------------------------------------------------------------------------


class _Told:
    """A plugin that tells the first process."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self.begun = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send((_REPORT, data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        if not self.begun:  # those of the past are played again to a new plugin
            return
        said = f"{warning_message.category.__name__}: {warning_message.message}"
        self._connection.send((_WARNING, {
            "message": said, "category": UserWarning, "filename": warning_message.filename,
            "lineno": warning_message.lineno, "when": when, "nodeid": nodeid, "where": location,
        }))  # fmt: skip


class _Mute:
    """Has the terminal of pytest, for pytest-timeout to write its stacks to, and no hooks that write reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = pytest.TerminalReporter(config, sys.stderr)._tw


def _become_worker(
    session: pytest.Session, connection: Connection, number: int, folder: Any, tests: Sequence[int]
) -> NoReturn:
    """Run tests until there are no more."""
    status, config = 1, session.config
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ["PYTEST_XDIST_WORKER"] = f"gw{number}"  # as tests know it
        os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(config.option.forks)
        random.seed()
        folder.mkdir(exist_ok=True)
        config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
        plugins = config.pluginmanager
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        plugins.unregister(name="terminalreporter")
        plugins.register(_Mute(config), "terminalreporter")
        plugins.register(told := _Told(config, connection))
        told.begun = True
        for at, behind in _pairs(connection, tests):
            connection.send((_BEGUN, at))
            item, nextitem = session.items[at], None if behind is None else session.items[behind]
            config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        status = 0
        atexit._run_exitfuncs()  # of the tests' own
    except BaseException:  # beyond it lies the first process's own code
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def _pairs(connection: Connection, tests: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Each test with the next; another file is asked for at the last test."""
    left = deque(tests)
    while left:
        at = left.popleft()
        if not left:
            connection.send((_WANTS, None))
            left.extend(connection.recv())
        yield at, left[0] if left else None
