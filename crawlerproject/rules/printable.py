r"""What a person reads: foreign text with its control characters escaped, and numbers, durations and moments in words.

Every character that moves, hides or re-orders is shown escaped on a terminal.
A title or a header may hold whatever its owner likes: an escape sequence clears the screen and writes a line of its
own over ours, U+202E turns a name round, a zero-width space hides in it. Shown are `\x1b`, `\u202e`, `\u200b`.
"""

from __future__ import annotations

import codecs
import re
from datetime import UTC, datetime

# C0 but tab and newline, DEL and C1 (ECMA-48: 0x9B alone begins a sequence); soft hyphen; what Unicode names bidi
# controls (UAX 9), joiners and other characters without width, separators of lines and paragraphs, fillers that show
# nothing, tags (which hide whole texts), and halves of surrogate pairs, which no UTF-8 can hold.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff"
)
_UNSAFE = re.compile(f"[{_HIDDEN}]")
_UNSAFE_IN_A_LINE = re.compile(f"[\t\n{_HIDDEN}]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
# The part of an address before its host, with a password. What cannot stand there ends it, so that the search is
# linear: no `/` is passed, and each begins behind one.
_PASSWORD = re.compile(r"(://[^\s/?#:@\"'<>]{0,256}):[^\s/?#\"'<>]{0,1024}@")
# In JSON text a backslash belongs to the sign behind it: where that is a quote, the address ends before both.
_REDIS = re.compile(r"\b(?:rediss?(?:\+sentinel)?|unix)://(?:[^\s\"'<>\\]|\\[^\s\"'<>])*")
_IN_QUERY = re.compile(r"([?&](?:sentinel_)?password=)[^&]*")
# What our own lines have of signs that not every terminal has (LANG=C, PYTHONIOENCODING=ascii).
_PLAIN_SIGNS = {
    "–": "-",
    "—": "-",
    "…": "...",
    "·": "-",
    "×": "x",
    "→": "->",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "’": "'",
}
PLAINER = "crawlerproject.plainer"
"""For ``errors=`` of a stream: what it cannot show is shown in plainer signs."""
_FOR_EVER_SECONDS = 1e11  # some 3,000 years
_NAMED = 10  # names that one line lists
LATEST = 253_402_300_799.0
"""Epoch seconds of the last second of year 9999: no later moment can be written as a date."""


def printable(text: str) -> str:
    """``text`` as a terminal may have it; newlines and tabs stay."""
    return _UNSAFE.sub(_escape, text)


def printable_line(text: str) -> str:
    """``printable`` in one line: for values of others, whose newlines would begin a line of ours."""
    return _UNSAFE_IN_A_LINE.sub(_escape, text)


def printable_json(text: str) -> str:
    """JSON text that means the same; in it such characters stand in strings only, where JSON has escapes for them."""
    return _UNSAFE.sub(_escape_json, text)


def without_passwords(text: str) -> str:
    """Addresses in ``text`` keep their user and lose their password: ``http://me:***@proxy.example:3128``.

    Those of Redis may have it in their query as well.
    """
    if "@" in text:
        text = _PASSWORD.sub(r"\1:***@", text)
    return _REDIS.sub(lambda found: _IN_QUERY.sub(r"\1***", found[0]), text) if "password=" in text else text


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)  # JSON (RFC 8259 7) writes what is beyond as two
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _plainer(error: UnicodeError) -> tuple[str | bytes, int]:
    """A codec's error handler: signs that the encoding lacks in plain ones, all else escaped; nothing is raised."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    plain = "".join(_PLAIN_SIGNS.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in missing)
    return plain, error.end


codecs.register_error(PLAINER, _plainer)


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``1,204 errors``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def human_bytes(count: int) -> str:
    """Bytes in the largest decimal unit that keeps the number above one: ``18.2 MB``."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def human_seconds(seconds: float) -> str:
    """A duration in its two largest units: ``0.4 s``, ``2 min 10 s``, ``3 h 5 min``, ``2 d 4 h``; any float will do."""
    if seconds < 59.95:
        return f"{max(seconds, 0.0):.1f} s"
    if not seconds < _FOR_EVER_SECONDS:
        return "for ever"
    whole = round(seconds)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {whole % 60} s"


def moment(epoch_seconds: float) -> str:
    """``2026-01-31 12:00:00 UTC``; a dash for no moment at all, "never" for one that no calendar has."""
    if epoch_seconds <= 0:
        return "–"
    if not epoch_seconds < LATEST:
        return "never"
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
