"""Decides which moment a sitemap or feed means by a date: W3C's forms, RFC 822's, and what is written for them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_MAX_CHARACTERS = 64  # of a date (ours): the longest of a name for each part has 50
# https://www.w3.org/TR/NOTE-datetime, with single digits, other signs and blanks where people write them.
_W3C = re.compile(
    r"(\d{4})(?:[-/.](\d\d?)(?:[-/.](\d\d?))?)?"
    r"(?:[Tt\s]\s*(\d\d?):(\d\d)(?::(\d\d))?(?:[.,]\d+)?)?\s*([A-Za-z]{1,5})?\s*([+-]\d\d?:?(?:\d\d)?)?"
)
_CLOCK = re.compile(
    r"\b(\d\d?):(\d\d)(?::(\d\d))?(?:[.,]\d+)?\s*([ap]m\b)?\s*\(?([a-z]{1,5}\b)?\s*([+-]\d\d?:?(?:\d\d)?\b)?"
)
_MONTHS = {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6}
_MONTHS |= {"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}
_WORDS = re.compile(r"[a-z]{3,9}|\d+")
# RFC 822 5.1; of other letters RFC 5322 4.3 says to take them for UTC.
_ZONE_HOURS = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}


def entry_date(text: str) -> float | None:
    """The epoch seconds of a date; without a zone it is UTC, without a time the day's beginning. None for no date."""
    text = text.strip()[:_MAX_CHARACTERS]
    moment: datetime | None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = _w3c(text) or _rfc_822(text.lower())
        except (ValueError, OverflowError):  # the 31st of February
            return None
    if moment is None:
        return None
    try:
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None  # before the web there was none


def _w3c(text: str) -> datetime | None:
    found = _W3C.fullmatch(text)
    if found is None:
        return None
    year, month, day, *clock, name, offset = found.groups()
    return _moment(int(year), int(month or 1), int(day or 1), clock, name or "", offset)


def _rfc_822(text: str) -> datetime | None:
    """Day, month by its English name, and year, in whatever order and between whatever signs."""
    hours: list[str | None] = [None, None, None]
    half = name = ""
    offset = None
    if (clock := _CLOCK.search(text)) is not None:
        *hours, half, name, offset = clock.groups()
        text = f"{text[: clock.start()]} {text[clock.end() :]}"
        if name and name[:3] in _MONTHS:  # the clock stands before the date
            text, name = f"{name} {text}", ""
    month = 0
    numbers = []
    for word in _WORDS.findall(text):
        if word.isdigit():
            numbers.append(word)
        elif not month:
            month = _MONTHS.get(word[:3], 0)
    if not month or len(numbers) != 2:
        return None
    day, year = sorted(numbers, key=len) if len(numbers[0]) > 2 else numbers
    if half and hours[0] is not None:
        hours[0] = str(int(hours[0]) % 12 + 12 * (half == "pm"))
    return _moment(_whole_year(year), month, int(day), hours, name or "", offset)


def _whole_year(year: str) -> int:
    """RFC 5322 4.3: two digits below 50 are of this century, three count from 1900."""
    number = int(year)
    if len(year) > 3:
        return number
    return number + (2000 if len(year) == 2 and number < 50 else 1900)


def _moment(year: int, month: int, day: int, clock: list[str | None], name: str, offset: str | None) -> datetime | None:
    hours, minutes, seconds = (int(part or 0) for part in clock)
    if hours > 24 or minutes > 59 or seconds > 60:
        return None
    zone = timedelta(hours=_ZONE_HOURS.get(name.lower(), 0))
    if offset:
        digits = offset[1:].replace(":", "")
        if len(digits) <= 2:
            digits += "00"
        zone = timedelta(hours=int(digits[:-2]), minutes=int(digits[-2:])) * (-1 if offset[0] == "-" else 1)
    return datetime(year, month, day, tzinfo=UTC) + timedelta(hours=hours, minutes=minutes, seconds=seconds) - zone
