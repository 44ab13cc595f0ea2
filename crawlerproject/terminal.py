"""All that reaches the operator's terminal or log goes through here, and nothing foreign passes as it is.

Three doors. ``say`` prints lines of ours, each one line whatever is in it. ``guard_streams`` puts itself before
standard output and errors, for what others print there: Scrapy, argparse, a traceback. ``guard_log`` does the same to
every record of the log, whichever handler writes it. What draws (Rich) gets a ``console``, which writes past the guard
and must be given ``printable`` text.

Passwords in addresses are left out at the same doors. Errors and our log name commands as they were typed: what goes to
standard output may be a site's text.

A table: on a terminal its first rows, in the columns that have room; elsewhere lines with tabs, row by row.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO

import orjson
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings, default_settings

from crawlerproject.command_list import as_typed
from crawlerproject.errors import sentence_of
from crawlerproject.rules.printable import PLAINER, printable, printable_json, printable_line, without_passwords

if TYPE_CHECKING:
    from rich.console import Console


# What continues a log record stands below its first line, where no line of the log begins.
_CONTINUED = "\n  "

# Records of Scrapy's that repeat what is the same in every crawl: logger -> how they begin. 58 lines of each start.
_HEAD = {
    "scrapy.addons": "Enabled addons",
    "scrapy.crawler": "Overridden settings",
    "scrapy.middleware": "Enabled ",
    "scrapy.utils.log": "Versions",
}
# And those that say what the panel and the summary say better.
_STATISTICS = "scrapy.statscollectors"
_ENDS = {"scrapy.utils.log": "", "scrapy.core.engine": "", _STATISTICS: "Dumping "}


EXIT_REFUSED = 2
"""What the operator can mend, as Scrapy's UsageError ends it."""


def say(*lines: str, error: bool = False) -> None:
    """Print each of ``lines`` as one line, on standard output or errors."""
    stream = sys.stderr if error else sys.stdout
    for line in lines:
        stream.write(without_passwords(printable_line(as_typed(line) if error else line)) + "\n")
    if error:
        stream.flush()


def refusal(error: Exception) -> UsageError:
    """What Scrapy's commands end with, in one sentence and with exit status 2, for what the operator can mend."""
    return UsageError(printable_line(as_typed(sentence_of(error))), print_help=False)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Have a command's refusals, argparse's own included, in one line, and its help without false headings.

    And what ``-s`` gives to a setting of Scrapy's that is a dictionary is one: Scrapy says of another value that it
    was not written as NAME=VALUE.

    Scrapy makes a heading of each line that ends in a colon, as "(default:" may where a line is broken.
    """

    def error(message: str) -> NoReturn:
        say(f"error: {message}", error=True)
        raise SystemExit(EXIT_REFUSED)

    def split_lines(formatter: Any, text: str, width: int) -> list[str]:
        return [line + " " * line.endswith(":") for line in kind._split_lines(formatter, text, width)]

    def setting(text: str) -> str:
        name, given, value = text.partition("=")
        if given and isinstance(getattr(default_settings, name, None), dict):
            with suppress(ValueError):
                if isinstance(json.loads(value), dict):
                    return text
            raise argparse.ArgumentTypeError(f'{name} is {value!r}; write it as a JSON object: {{"NAME": VALUE}}.')
        return text

    parser.error = error  # type: ignore[method-assign]
    for action in parser._actions:
        if action.dest == "set":
            action.type = setting
    kind: Any = parser.formatter_class
    ours: Any = type(kind.__name__, (kind,), {"_split_lines": split_lines})
    parser.formatter_class = ours


def say_json(value: Any, *, lines: bool = False) -> None:
    """One JSON document on standard output; ``lines``: a value of a list a line, as programs read long answers."""
    for one in value if lines else [value]:
        sys.stdout.write(json_text(one, indent=not lines) + "\n")


def say_either(facts: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Facts for programs, or lines for people."""
    if as_json:
        say_json(facts)
    else:
        say(*lines)


def json_text(value: Any, *, indent: bool = False) -> str:
    """Valid JSON that a terminal may have, too."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0, default=str).decode()
    except TypeError:  # half of a surrogate pair, which it refuses
        text = json.dumps(value, indent=2 if indent else None, default=str)
    return printable_json(without_passwords(text))


class GuardedStream:
    """A text stream on which nothing foreign is written as it is; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.guarded = stream

    def write(self, text: str) -> int:
        """Escaped; the length of what was given, as callers expect."""
        self.guarded.write(without_passwords(printable(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """One after the other."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        """For bytes: as they are into a pipe or a file, escaped on a terminal."""
        buffer = self.guarded.buffer
        return _GuardedBytes(self.guarded) if self.guarded.isatty() else buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.guarded, name)

    def __enter__(self) -> GuardedStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.guarded.flush()


class _GuardedBytes:
    """Bytes on a terminal: UTF-8 as text, all else escaped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        """Decoded, escaped and written."""
        text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
        self._stream.write(without_passwords(printable(text)))
        return len(data)

    def flush(self) -> None:
        """Hand on what was written."""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream.buffer, name)


def guard_streams() -> None:
    """Stand before standard output and errors, once; and before the log."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, GuardedStream):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=PLAINER)
            setattr(sys, name, GuardedStream(stream))
    guard_log()


def unguard_streams() -> None:
    """For the interactive console, whose own colours are not foreign; what it shows are Python's representations."""
    for name in ("stdout", "stderr"):
        setattr(sys, name, bare(getattr(sys, name)))


def bare(stream: Any) -> Any:
    """The stream itself, for what draws."""
    return stream.guarded if isinstance(stream, GuardedStream) else stream


def console(*, error: bool = False) -> Console:
    """Rich's, past the guard; ``[link]`` and ``:smile:`` are text. Give it ``printable`` text only."""
    from rich.console import Console  # what does not draw need not import it

    stream = bare(sys.stderr if error else sys.stdout)
    return Console(file=stream, markup=False, emoji=False, highlight=False)


class GuardedRecord(logging.LogRecord):
    """A record whose text is escaped before any handler sees it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[1] is not None:
            self.exc_text = _below("".join(traceback.format_exception(*self.exc_info)))
        if self.stack_info:
            self.stack_info = _below(self.stack_info)

    def getMessage(self) -> str:
        """Of our own loggers one line; of others' what continues it stands below."""
        text = without_passwords(super().getMessage())
        if self.name.startswith("crawlerproject"):
            return printable_line(as_typed(text))
        return printable(text).replace("\n", _CONTINUED)


def guard_log() -> None:
    """From now on every record is a guarded one."""
    logging.setLogRecordFactory(GuardedRecord)


def has_json_log(settings: BaseSettings) -> bool:
    """Whether the log is for a program: one JSON object a line."""
    return bool(settings.get("LOG_LINES") == "json")


def has_panel(settings: BaseSettings) -> bool:
    """Whether a crawl shows itself on a terminal; its log then only has what an operator needs to see."""
    return sys.stderr.isatty() and not settings.get("LOG_FILE") and not has_json_log(settings)


def _lowered(begins: str) -> Callable[[logging.LogRecord], bool]:
    """Makes Scrapy's INFO records whose message begins so DEBUG records: shown when LOG_LEVEL is DEBUG."""

    def lower(record: logging.LogRecord) -> bool:
        if record.levelno == logging.INFO and not record.exc_info and str(record.msg).startswith(begins):
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        return True

    return lower


def _one_line(record: logging.LogRecord) -> bool:
    """Makes one line of Scrapy's statistics, which have forty-five."""
    record.msg = " ".join(str(record.msg).split())
    return True


def quiet_scrapy(settings: BaseSettings) -> None:
    """A crawl of ours begins: what Scrapy says of its own parts is for LOG_LEVEL=DEBUG.

    On a terminal that is also its statistics, which the summary replaces, and a line has the time only.
    """
    panel = has_panel(settings)
    for name, begins in (_HEAD | _ENDS if panel else _HEAD).items():
        logging.getLogger(name).addFilter(_lowered(begins))
    if panel:
        settings.set("LOG_FORMAT", "%(asctime)s %(levelname)s: %(message)s", priority="command")
        settings.set("LOG_DATEFORMAT", "%H:%M:%S", priority="command")
    else:
        logging.getLogger(_STATISTICS).addFilter(_one_line)


def _below(text: str) -> str:
    return printable(without_passwords(f"\n{text.rstrip()}")).replace("\n", _CONTINUED).removeprefix("\n")


SCREEN_ROWS = 50
"""Of a table on a terminal (ours): what a person reads."""
_GAP = "   "
_TELLING = 28  # letters of the first column for whose sake others are left out: a name and its port
_SHORTEST = 8
ELLIPSIS = "…"


class Layout(NamedTuple):
    """``columns``: the title of each and how its cell is written, the first one's being a name."""

    columns: Mapping[str, Callable[[Any], str]]
    texts: tuple[str, ...]  # columns of words, which stand at their left; numbers at their right
    least_first: tuple[str, ...] = ()  # without room the first of these goes first


def is_screen() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def say_table(layout: Layout, rows: Iterable[Any]) -> list[str]:
    """Write the rows as they come; on a terminal hold them to find their widths. The columns that had no room."""
    if is_screen():
        return _on_screen(layout, list(rows))
    _write(layout.columns, "\t")
    for row in rows:
        _write((printable_line(cell(row)) for cell in layout.columns.values()), "\t")
    return []


def say_below(*lines: str) -> None:
    """A note on a table as a whole: below it on a terminal, elsewhere on standard errors, apart from the rows."""
    if not is_screen():
        say(*lines, error=True)
        return
    for line in lines:
        say(*wrap(line, shutil.get_terminal_size().columns))


def _on_screen(layout: Layout, rows: list[Any]) -> list[str]:
    cells = {name: [printable_line(cell(row)) for row in rows] for name, cell in layout.columns.items()}
    widths = {name: max(map(len, (name, *texts))) for name, texts in cells.items()}
    shown, room = columns_that_fit(widths, layout.least_first, shutil.get_terminal_size().columns)
    first, *_ = widths
    widths[first] = min(widths[first], room)
    cells[first] = [_end_of(text, room) for text in cells[first]]
    aligned = {name: str.ljust if name in layout.texts else str.rjust for name in shown}
    _write((aligned[name](name, widths[name]) for name in shown), _GAP)
    _write(["-" * (sum(widths[name] for name in shown) + len(_GAP) * (len(shown) - 1))], _GAP)
    for row in zip(*(cells[name] for name in shown), strict=True):
        _write((aligned[name](cell, widths[name]) for name, cell in zip(shown, row, strict=True)), _GAP)
    return [name for name in widths if name not in shown]


def columns_that_fit(widths: Mapping[str, int], least_first: Iterable[str], room: int) -> tuple[list[str], int]:
    """The columns for which there is room, in the order of ``widths``, and the width of the first.

    Least important ones are left out before the first loses its telling part; a number is never cut.
    """
    shown = list(widths)
    least = min(widths[shown[0]], _TELLING)

    def others() -> int:
        return sum(widths[name] + len(_GAP) for name in shown[1:])

    for name in least_first:
        if least + others() <= room:
            break
        shown.remove(name)
    return shown, max(_SHORTEST, min(widths[shown[0]], room - others()))


def _end_of(text: str, room: int) -> str:
    """The end of a name says whose it is."""
    return text if len(text) <= room else ELLIPSIS + text[len(text) - room + len(ELLIPSIS) :]


def _write(cells: Iterable[str], between: str) -> None:
    sys.stdout.write(without_passwords(between.join(cells)).rstrip(" ") + "\n")
