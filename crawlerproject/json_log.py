"""The log as one JSON object a line, for journald, Loki, Elastic and their like: LOG_LINES=json.

Scrapy makes its handler with a formatter that no setting replaces; LOG_INSTALL_ROOT_HANDLER is its way of leaving the
handler to others.

Where the log is JSON on standard error, what others write there becomes lines of the log.

A driver of the browser that does not start, a process that reads pages and dies, a library in C, Python's own last
words: none of them knows of a log, and all of them have file descriptor 2.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from scrapy.settings import BaseSettings
from scrapy.utils.log import TopLevelFormatter, get_scrapy_root_handler

from crawlerproject.rules.printable import PLAINER, without_passwords
from crawlerproject.terminal import guard_log, has_json_log, json_text

# The log's name for what is no line of it, as released versions have it.
_OTHERS = "crawlerproject.standard_error"
logger = logging.getLogger(_OTHERS)

_DESCRIPTOR = 2
# A line without an end is cut (ours); a message is a sentence or a traceback.
_MOST_CHARACTERS = 10_000
# At the end of the process, for what is still in the pipe; a process that it leaves behind may hold that open.
_LAST_SECONDS = 0.5

_own: list[TextIO] = []  # the one, as the process has one descriptor


def own_stream() -> TextIO | None:
    """Standard error itself, for the log alone; None while it is everyone's."""
    return _own[0] if _own else None


def take_standard_error(say: Callable[[str], None]) -> None:
    """From now on, once; for a process that is ours alone. ``say`` gets each line, in a thread of its own.

    It is given back when the process ends.
    """
    if _own:
        return
    _own.append(os.fdopen(os.dup(_DESCRIPTOR), "w", buffering=1, encoding="utf-8", errors=PLAINER))
    out, into = os.pipe()
    os.dup2(into, _DESCRIPTOR)
    os.close(into)
    reader = threading.Thread(target=_read, args=(out, say), name="standard-error", daemon=True)
    reader.start()
    sys.excepthook = _uncaught
    atexit.register(_give_back, reader, _own[0].fileno())


def _read(out: int, say: Callable[[str], None]) -> None:
    with os.fdopen(out, encoding="utf-8", errors="backslashreplace") as lines:
        while line := lines.readline(_MOST_CHARACTERS):
            if text := line.rstrip():
                say(text)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logger.critical("The process ends by an error of its own.", exc_info=(kind, error, trace))


def _give_back(reader: threading.Thread, own: int) -> None:
    sys.stderr.flush()
    os.dup2(own, _DESCRIPTOR)
    reader.join(_LAST_SECONDS)


CONTEXT = ("host", "url", "reason", "worker")
"""What a record says of itself beside its sentence, by ``extra=``; every other name is left out."""

# sd-daemon(3): levels of syslog, which journald takes from the beginning of a line.
_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_LEAST = 7


class JsonFormatter(logging.Formatter):
    """``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, ``pid``; where there is one, ``traceback``, CONTEXT
    and the ``spider``. Passwords in addresses are left out, and no character moves a terminal.
    """

    def __init__(self, *, journal: bool = False, worker: str = "") -> None:
        """``journal``: each line begins with its priority, which journald takes off.

        ``worker``: whose process this is, in a fleet.
        """
        super().__init__()
        self._journal = journal
        self._own = {"worker": worker} if worker else {}

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever is in the record."""
        given = {name: _plain(value) for name, value in _fields(record).items() if value is not None}
        line = json_text(given if "worker" in given else given | self._own)
        if not self._journal:
            return line
        return f"<{next((priority for least, priority in _PRIORITIES if record.levelno >= least), _LEAST)}>{line}"


def take_log(settings: BaseSettings) -> None:
    """Where LOG_LINES is json, write the log by these settings from now on, in Scrapy's place; again when they changed.

    A program that has switched Scrapy's handler off writes its log itself, and goes on doing so.
    """
    if not has_json_log(settings):
        return
    before = json_handler()
    if before is None:
        if not settings.getbool("LOG_INSTALL_ROOT_HANDLER"):
            return
        settings.set("LOG_INSTALL_ROOT_HANDLER", False, "cmdline")
        before = get_scrapy_root_handler()
    if before is not None:
        logging.root.removeHandler(before)
        before.close()
    guard_log()
    logging.root.setLevel(logging.NOTSET)
    logging.root.addHandler(_handler(settings, before))


def take_process(settings: BaseSettings) -> None:
    """``take_log`` in a process of ours, whose standard error is the log's alone where the log goes there.

    Settings that no log can be made of are left to the check of the start.
    """
    with suppress(OSError, LookupError, ValueError):
        take_log(settings)
        if own_stream() is None and type(json_handler()) is logging.StreamHandler:
            take_standard_error(_say_of_others)
            take_log(settings)


def json_handler() -> logging.Handler | None:
    """That which writes this log, when there is one."""
    return next((one for one in logging.root.handlers if isinstance(one.formatter, JsonFormatter)), None)


def _say_of_others(text: str) -> None:
    """To our handler alone: another one may write on standard error, and would hear itself."""
    handler = json_handler()
    if handler is not None and handler.level <= logging.WARNING:
        name = _OTHERS
        handler.handle(logging.getLogger(name).makeRecord(name, logging.WARNING, "", 0, "%s", (text,), None))


def formatter_of(settings: BaseSettings) -> logging.Formatter:
    """How a line of the log looks in a file."""
    if has_json_log(settings):
        return JsonFormatter()
    return logging.Formatter(settings["LOG_FORMAT"], settings["LOG_DATEFORMAT"])


def is_journal(stream: Any, environment: Mapping[str, str]) -> bool:
    """Whether what is written to ``stream`` goes to journald: JOURNAL_STREAM (systemd.exec(5)) names its file."""
    device, _, inode = environment.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):  # no file at all, or a closed one
        return False
    return (device, inode) == (str(found.st_dev), str(found.st_ino))


def _handler(settings: BaseSettings, before: logging.Handler | None) -> logging.Handler:
    """The handler of Scrapy's choice; what one of ours wrote ``before``, by other settings of the same start, stays."""
    handler: logging.Handler
    if path := settings.get("LOG_FILE"):
        wrote = isinstance(before, logging.FileHandler) and before.baseFilename == os.path.abspath(path)
        ours = wrote and before is not None and isinstance(before.formatter, JsonFormatter)
        if not settings.getbool("LOG_FILE_APPEND") and not ours:
            Path(path).write_bytes(b"")
        # Scrapy's configure_logging closes all handlers; one that appends opens its file again, one of mode w does not.
        handler = logging.FileHandler(path, "a", encoding=settings.get("LOG_ENCODING"))
    elif settings.getbool("LOG_ENABLED"):
        handler = logging.StreamHandler(own_stream())
    else:
        handler = logging.NullHandler()
    journal = not path and is_journal(own_stream() or sys.stderr, os.environ)
    handler.setFormatter(JsonFormatter(journal=journal, worker=str(settings.get("FLEET_WORKER") or "")))
    handler.setLevel(settings.get("LOG_LEVEL"))
    if settings.getbool("LOG_SHORT_NAMES"):
        handler.addFilter(TopLevelFormatter(["scrapy"]))
    return handler


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.created, UTC)
    try:
        message = record.getMessage()
    except (TypeError, ValueError, KeyError):  # its arguments are not those of its text
        message = f"{record.msg} {record.args}"
    fields = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname,
        "logger": record.name,
        "message": message,
        "pid": record.process,
        "spider": getattr(getattr(record, "spider", None), "name", None),  # Scrapy's own mark
        **{name: getattr(record, name, None) for name in CONTEXT},
    }
    if record.exc_info and record.exc_info[1] is not None:
        fields["traceback"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
    if record.stack_info:
        fields["stack"] = record.stack_info
    return fields


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else without_passwords(str(value))
