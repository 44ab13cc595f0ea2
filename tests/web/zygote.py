"""Scrapy's command line as a process that need not import libraries again: forked off one that has.

Most of what the suite spent was the import of Scrapy, Twisted, numpy and the crawler itself: more than a second for
each of several hundred processes. ``Process`` and ``run`` are for them what ``subprocess`` has. What is forked has its
own arguments, environment, folder and files; what the crawler does as it is imported is done again, or it is imported
anew. Its end runs what waits for it, and leaves all else to the kernel. ``scrapy fleet`` forks its workers off a second
such process. All workers of pytest-xdist have one. Outside pytest nothing is forked: benchmarks pay for their start.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import runpy
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn, Self

from tests.web.waiting import busyness

PROJECT = Path(__file__).resolve().parents[2]
#: What the crawler imports of others as it starts, but for what reads the environment or installs a reactor.
LIBRARIES = (
    *(
        "scrapy.cmdline",
        "scrapy.crawler",
        "scrapy.core.downloader",
        "scrapy.utils.defer",
        "scrapy.extensions.corestats",
    ),
    *("scrapy.logformatter", "scrapy.responsetypes", "scrapy.statscollectors", "scrapy.spidermiddlewares.base"),
    *("numpy", "aiodns", "uvloop", "rocksdict", "selectolax.lexbor", "ada_url", "can_ada", "orjson", "protego"),
    *("isal.igzip", "xxhash", "simhash", "brotli", "tomlkit", "cryptography.x509", "numpy.typing", "mmap"),
    # By the end of a crawl. Its allocator is made for a fork, its own threads begin with its first work.
    *("pyarrow.parquet", "redis", "twisted.web.server"),
)
# Modules that are run so.
FORKED = ("scrapy", "tests.web.later", "tests.web", "tests.crawls.faults", "tests.crawls.fleet.asked_on_loop")
# What is made as these are imported is made for each process.
_MADE_ANEW = ("crawlerproject.commands.fleet",)
# Of the environment, what the crawler reads as it is imported, beside the operator's settings.
_PROXIES = "_proxy"
# Of the environment, what the interpreter reads as it starts; the others are read anew.
_INTERPRETERS = ("PYTHON", "LC_", "LANG")
_READ_ANEW = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # before any test's changes
_MESSAGE_BYTES = 1 << 18
_LOOK_SECONDS = 0.01
_ENDED = 255 << 8  # the status of a process whose zygote is gone
_MOST_FILES = 16  # that a message brings
_ABOVE_FILES = 512  # descriptors that a process may want under their own numbers are below


class Process:
    """A process that runs ``command``; as ``subprocess.Popen``, but that its output goes to a file or nowhere."""

    def __init__(
        self,
        command: Sequence[str],
        stdout: IO[bytes] | None = None,
        *,
        cwd: Path = PROJECT,
        env: Mapping[str, str] | None = None,
        stdin: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        pass_fds: Sequence[int] = (),
        start_new_session: bool = False,
    ) -> None:
        """Without ``stderr`` both outputs are one."""
        self.args = list(command)
        self.returncode: int | None = None
        self.cpu_seconds = 0.0  # once it has ended: its own and of the children that it waited for
        self.peak_bytes = 0
        self._zygote: socket.socket | None = None
        environment = dict(os.environ if env is None else env)
        with open(os.devnull, "r+b") as nothing:
            out = stdout or nothing
            files = (stdin or nothing, out, stderr or out)
            if _forks(self.args, environment):
                self.pid = self._fork(files, cwd, environment, pass_fds, start_new_session)
            else:
                self._real = subprocess.Popen(
                    command, cwd=cwd, env=environment, stdin=files[0], stdout=files[1], stderr=files[2],
                    pass_fds=pass_fds, start_new_session=start_new_session,
                )  # fmt: skip
                self.pid = self._real.pid

    def _fork(
        self, files: Sequence[IO[bytes]], cwd: Path, environment: dict[str, str], more: Sequence[int], session: bool
    ) -> int:
        self._zygote, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        asked = {"arguments": self.args[2:], "cwd": str(cwd), "env": environment, "files": limits}
        said = json.dumps({**asked, "more": list(more), "session": session}).encode()
        with theirs:
            socket.send_fds(_zygote(), [said], [theirs.fileno(), *(file.fileno() for file in files), *more])
        return int(self._zygote.recv(_MESSAGE_BYTES))

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status once it has ended; ``subprocess.TimeoutExpired`` when an idle machine needs longer."""
        until = None if timeout is None else time.monotonic() + timeout * busyness()
        while (status := self._look(0 if until is None else os.WNOHANG)) is None:
            assert timeout is not None
            assert until is not None
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(_LOOK_SECONDS)
        return status

    def send_signal(self, number: int) -> None:
        """Nothing once it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def _look(self, flags: int) -> int | None:
        if self.returncode is None:
            found = self._forked(flags) if self._zygote else _waited(self.pid, flags)
            if found is not None:
                status, self.cpu_seconds, self.peak_bytes = found
                self.returncode = os.waitstatus_to_exitcode(status)
                if self._zygote:
                    self._zygote.close()
                else:
                    self._real.returncode = self.returncode
        return self.returncode

    def _forked(self, flags: int) -> tuple[int, float, int] | None:
        assert self._zygote is not None
        try:
            answer = self._zygote.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT if flags else 0)
        except BlockingIOError:
            return None
        status, cpu_seconds, peak_bytes = json.loads(answer) if answer else (_ENDED, 0.0, 0)
        return status, cpu_seconds, peak_bytes


def run(
    command: Sequence[str],
    *,
    cwd: Path = PROJECT,
    env: Mapping[str, str] | None = None,
    input: str = "",
    timeout: float = 60.0,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """``subprocess.run`` with the output captured as text."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(input.encode())
        stdin.seek(0)
        process = Process(command, out, cwd=cwd, env=env, stdin=stdin, stderr=err)
        try:
            process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        ended = subprocess.CompletedProcess(process.args, process.wait(), out.read().decode(), err.read().decode())
    if check:
        ended.check_returncode()
    return ended


def direct(**more: str) -> dict[str, str]:
    """The environment without what makes programs ask through a proxy, and with ``more``."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")} | more


def _waited(pid: int, flags: int) -> tuple[int, float, int] | None:
    found, status, usage = os.wait4(pid, flags)
    return (status, *_spent(usage)) if found else None


def _spent(usage: resource.struct_rusage) -> tuple[float, int]:
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024  # Linux counts kibibytes


def _forks(command: list[str], environment: Mapping[str, str]) -> bool:
    """Whether a fork is the same as a start: the interpreter itself would be given the same."""
    return (
        "PYTEST_VERSION" in os.environ
        and command[:2] == [sys.executable, "-m"]
        and command[2] in FORKED
        and _interpreters(environment) == _interpreters(_ENVIRONMENT)
        and not any(Path(entry, "sitecustomize.py").exists() for entry in _python_path(environment))
    )


def _interpreters(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(_INTERPRETERS) and name not in _READ_ANEW
    }


def _python_path(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]


_given: list[socket.socket] = []
_SHARED = "TESTS_ZYGOTE"  # in the environment of workers: where the one of all listens


def share() -> None:
    """Have the workers that this process will start ask one zygote, which ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="zygote"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_SHARED] = str(folder / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(os.environ[_SHARED])
        listener.listen()
        _start(listener)


@cache
def _zygote() -> socket.socket:
    """Of this process, or of all workers; it ends with those who ask it."""
    if _given:
        return _given[0]
    if _SHARED in _ENVIRONMENT:
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asking.connect(_ENVIRONMENT[_SHARED])
        return asking
    return _start()


def _start(*listener: socket.socket) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        numbers = [each.fileno() for each in (theirs, *listener)]
        command = [sys.executable, "-m", __name__, *map(str, numbers)]
        process = subprocess.Popen(command, cwd=PROJECT, env=_without_settings(), pass_fds=numbers)
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _without_settings() -> dict[str, str]:
    """The environment in which no operator has set anything for all crawls."""
    kept = {name: value for name, value in _ENVIRONMENT.items() if not _is_read(name)}
    return kept | {"XDG_CONFIG_HOME": os.devnull}


def _is_read(name: str) -> bool:
    """Whether the crawler reads this variable as it is imported."""
    return name.startswith("POLITE_") or name.lower().endswith(_PROXIES)


# --- The zygote ----------------------------------------------------------------------------------


def _serve(owner: socket.socket, listener: socket.socket | None = None) -> None:
    """Fork for each message, and send how each child ended; returns in a child, its program being the arguments.

    Messages come from the ``owner``, with which this ends, and from those that connect to the ``listener``.
    """
    children: dict[int, tuple[int, socket.socket]] = {}  # pidfd -> (pid, where to say how it ended)
    sockets = {owner.fileno(): owner} | ({listener.fileno(): listener} if listener is not None else {})
    ready = selectors.DefaultSelector()
    for number in sockets:
        ready.register(number, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fd in children:
                pid, answers = children.pop(key.fd)
                ready.unregister(key.fd)
                os.close(key.fd)
                _, status, usage = os.wait4(pid, 0)
                with answers:
                    _send(answers, json.dumps([status, *_spent(usage)]))
                continue
            asked = sockets[key.fd]
            if asked is listener:
                asking = listener.accept()[0]
                sockets[ready.register(asking.fileno(), selectors.EVENT_READ).fd] = asking
                continue
            message, fds, _, _ = socket.recv_fds(asked, _MESSAGE_BYTES, _MOST_FILES)
            if not message and asked is owner:
                sys.exit()  # the tests have ended
            if not message:
                ready.unregister(key.fd)
                sockets.pop(key.fd).close()
                continue
            pid = os.fork()
            if not pid:
                ready.close()
                for other in sockets.values():
                    other.close()
                for number, (_, others) in children.items():
                    os.close(number)
                    others.close()
                os.close(fds[0])
                _become(json.loads(message), fds[1:])
            for number in fds[1:]:
                os.close(number)
            answers = socket.socket(fileno=fds[0])
            _send(answers, str(pid))
            descriptor = os.pidfd_open(pid)
            children[descriptor] = pid, answers
            ready.register(descriptor, selectors.EVENT_READ)


def _send(answers: socket.socket, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # its test no longer waits
        answers.send(text.encode())


def _become(asked: dict[str, Any], fds: list[int]) -> NoReturn:
    """The program that was asked for, as if the interpreter had just begun."""
    environment, arguments = asked["env"], asked["arguments"]
    if asked["session"]:
        os.setsid()
    above = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ABOVE_FILES) for descriptor in fds]
    for descriptor in fds:
        os.close(descriptor)
    for number, descriptor in zip([0, 1, 2, *asked["more"]], above, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if "fleet" in arguments:
        _given[:] = [_zygote_below()]
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(asked["files"]))
    os.chdir(str(asked["cwd"]))
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:1] = [str(asked["cwd"]), *_python_path(environment)]
    _forget("tests")
    if not _hastens(arguments) and _is_ours():
        _renew()
        if _given:
            _fork_workers()
    else:
        _forget("crawlerproject")
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    random.seed()
    sys.argv = list(arguments)
    _end(_status_of(arguments[0]))


def _status_of(module: str) -> int:
    """Run it; what the interpreter would exit with."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0)
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _end(status: int) -> NoReturn:
    """As the interpreter does, but that it takes no module apart: a fork would have to copy them all for that."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def _zygote_below() -> socket.socket:
    """One for the workers that this process will start; it ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        ours.close()
        os.setsid()  # a terminal's Ctrl-C is not for it
        with contextlib.suppress(SystemExit):
            _serve(theirs)
        os._exit(0)
    theirs.close()
    return ours


def _fork_workers() -> None:
    """Have ``scrapy fleet`` start its workers as the tests start it."""
    from crawlerproject.fleet import supervisor

    def start(command: list[str], stdout: IO[bytes], pass_fds: Sequence[int], **_: Any) -> Process:
        return Process(command, stdout, cwd=Path.cwd(), pass_fds=pass_fds, start_new_session=True)

    started = SimpleNamespace(Popen=start, STDOUT=subprocess.STDOUT, DEVNULL=subprocess.DEVNULL)
    vars(supervisor)["subprocess"] = started


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _hastens(arguments: list[str]) -> bool:
    """Whether ``tests.web.later`` puts functions into the module ``time`` that others have taken from it by then."""
    return arguments[0] == "tests.web.later" and "+" in arguments[1]


def _is_ours() -> bool:
    """Whether a start would import the very modules that are here, and find the same settings and proxies."""
    found = PathFinder.find_spec("crawlerproject")
    if found is None or found.origin != str(PROJECT / "crawlerproject" / "__init__.py"):
        return False
    from crawlerproject.stores.operator_files.user_settings import read_user_settings

    given = read_user_settings(os.environ)
    return not (given.file or given.environment or given.problem or any(map(_is_read, os.environ)))


def _renew() -> None:
    """Do what a start does as it imports the crawler, where that depends on the moment and the environment."""
    import crawlerproject
    from crawlerproject import settings
    from crawlerproject.runtime import clock
    from crawlerproject.stores.operator_files.user_settings import read_user_settings

    importlib.reload(crawlerproject)  # it sets a variable of the environment
    settings._USER = read_user_settings(os.environ)
    clock._EPOCH = clock.epoch_of_boot()
    clock.CRAWL.follow(clock._EPOCH)
    for name in _MADE_ANEW:
        del sys.modules[name]


def _import_libraries() -> None:
    import crawlerproject  # what it sets in the environment counts for numpy

    del crawlerproject
    for name in LIBRARIES:
        importlib.import_module(name)
    _import_all("scrapy.commands")


def _import_crawler() -> None:
    """What ``scrapy crawl`` imports: the commands, the spider, and the components that the settings name."""
    from scrapy import cmdline

    from crawlerproject import settings
    from crawlerproject.rules.url.domains import registered_domain

    _import_all("crawlerproject.commands")
    for name in ("spiders.web", "spiders.plan_spider", "stores.index.parquet_tables"):
        importlib.import_module(f"crawlerproject.{name}")
    registered_domain("a.test")  # reads the list
    for value in vars(settings).values():
        named = [*value, *value.values()] if isinstance(value, dict) else [value]
        for path in named:
            if isinstance(path, str) and path.startswith("crawlerproject."):
                importlib.import_module(path.rpartition(".")[0])
    for package in ("scrapy.commands", "crawlerproject.commands"):  # what a first look finds out, later ones know
        cmdline._get_commands_from_module(package, inproject=True)
    cmdline._get_commands_from_entry_points(inproject=True)
    assert "twisted.internet.reactor" not in sys.modules  # each process installs its own
    assert threading.active_count() == 1  # a fork has no other


def _import_all(package: str) -> None:
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


if __name__ == "__main__":
    _sockets = [socket.socket(fileno=int(number)) for number in sys.argv[1:]]
    select.select(_sockets, [], [])  # tests that fork nothing end before
    _import_libraries()
    _import_crawler()
    gc.collect()
    gc.freeze()  # a child's collector need not touch what all share
    _serve(*_sockets)
