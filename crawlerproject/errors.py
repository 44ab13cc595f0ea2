"""Errors by whose they are: the operator's stop at start, the web's are counted, ours raise."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from crawlerproject.reasons import Reason

if TYPE_CHECKING:
    from crawlerproject.rules.archive.http_messages import Wire


OUR_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})
"""Of an OSError: this process or machine has no more files, memory or processes to give; the other side did nothing."""


class OperatorError(Exception):
    """Something the operator can mend (a setting, a file); the message is one sentence that says how."""


def sentence_of(error: Exception) -> str:
    """What an operator is to read: an error's own words, of an OSError the file and what became of it."""
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            where = f"The disk of {error.filename}" if error.filename else "A disk"
            return f"{where} is full ({error.strerror}); make room on it, and give the same command again."
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return str(error)


class NameTaken(OperatorError):
    """Another worker of this name is at work."""


class FetchError(Exception):
    """The web's error: a request that got no usable answer.

    ``reason`` is the word for log and stats, ``detail`` one line for humans, ``wire`` what was
    sent and received before it failed (None when nothing was connected).
    """

    def __init__(self, reason: Reason, detail: str = "", wire: Wire | None = None) -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail
        self.wire = wire


class LeaseOver(Exception):
    """Ours: the time in which a request may be sent was over before it was; nothing was sent."""


class StorageError(Exception):
    """Ours or the disk's: nothing was changed; try again when there is room."""


class TargetError(StorageError):
    """The place where the archive goes refused or failed: nothing that counts was changed; try again later."""


class LeaseLost(StorageError):
    """Another worker holds what this one wrote for; nothing of it was written. Start over."""


OPERATOR_ERROR, STORE_FORGOT = "operator_error", "store_forgot"
"""A crawl's ``finish_reason`` where an operator must mend something first."""
NOTHING_FETCHED = "nothing_fetched"
"""A crawl's ``finish_reason`` when it has ended by itself without one good answer."""
EXIT_FORGOTTEN = 65
"""The exit status of a crawl that StoreForgot ends (sysexits.h: EX_DATAERR): a new start alone does not help."""


class StoreForgot(OperatorError, StorageError):
    """Redis knows less than it had answered for: waiting does not help; the operator gives it its data back."""


class FrontierDamaged(OperatorError, StorageError):
    """The disk's: a part of the frontier cannot be read. Waiting does not help; the operator has it made again."""
