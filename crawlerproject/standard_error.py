"""Where the log is JSON on standard error, what others write there becomes lines of the log.

A driver of the browser that does not start, a process that reads pages and dies, a library in C, Python's own last
words: none of them knows of a log, and all of them have file descriptor 2.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from crawlerproject.rules.printable import PLAINER

logger = logging.getLogger(__name__)

_DESCRIPTOR = 2
# A line without an end is cut (ours); what is said there is a sentence or a traceback.
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
