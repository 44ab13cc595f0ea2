"""The page reader in C, where it has been built: ``reader`` is the extension, or None: pages are read in Python.

Both read alike (tests/native), so that whether it is there changes what a page costs and nothing else. ``make`` builds
it (``build.py``) if there is a C compiler; lexbor, which parses, is compiled in. It is not used if NATIVE_READER is
``never``, if CRAWLER_NATIVE=0 is in the environment, or if it was built from other sources or for another Python.
"""

from __future__ import annotations

import logging
import os
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Set
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
logger = logging.getLogger(__name__)

HERE = Path(__path__[0]).resolve()
MODULE = "_page"
SUFFIX = ".so"
"""The end of an extension's name; before it stands the tag of the Python that it was built for."""
PATCH = HERE / "lexbor.patch"
_LOCK = HERE.parents[1] / "requirements.lock"
AUTO, NEVER = "auto", "never"
"""What NATIVE_READER may be."""
ENVIRONMENT = "CRAWLER_NATIVE"
"""``0`` in the environment has pages read in Python, whatever NATIVE_READER is."""


class Page(Protocol):
    """The extension ``_page``; ``module.c`` says what its answers are made of."""

    SOURCES: str
    """The digest of the sources that it was built from."""

    def read(self, source: bytes, /) -> tuple[Any, ...]:
        """What a page says, in one walk."""

    def extract(self, source: bytes, /) -> tuple[Any, ...]:
        """What a search index gets of a page, in one walk."""

    LIMITS: Mapping[str, int]
    """Numbers that both readers share."""

    def is_utf8(self, source: bytes, /) -> bool:
        """Whether bytes are UTF-8."""

    def said(self, text: bytes, /) -> bytes:
        """A text without digits and blanks of ASCII."""

    def weight(self, source: bytes, /) -> int:
        """What a page would cost a parser."""

    def record(self, data: bytes, /) -> tuple[Any, bytes] | None:
        """Fields and block of a plain WARC record; None: Python has to judge it."""

    def addresses(
        self,
        targets: Iterable[str],
        join: Callable[[str], Any],
        digest: Callable[[bytes], bytes],
        kind: type[T],
        /,
        *base: Any,
    ) -> list[T]:
        """``Base.addresses``; ``base``: origin, folder, host, scheme, host's digest, ``_shapes``, the page's key."""

    def targets(
        self, found: list[Any], target: Callable[[str], str | None], kind: type[T], origin: str, folder: str, /
    ) -> tuple[list[T], str | None]:
        """Links of ``extract`` as they are kept, and the canonical one; ``target`` is asked about what is not plain."""

    def followed(self, addresses: Iterable[Any], kind: type[T], /, *page: Any) -> list[T]:
        """``followed``; ``page``: host, depth, hops, via, priority, what gives the flags of another host, note."""

    def news(self, found: Iterable[T], younger: Set[bytes], older: Set[bytes], /) -> tuple[list[T], int]:
        """What of it is in neither set of keys, and all its flags."""

    def allowed(
        self,
        found: Iterable[T],
        hosts: Mapping[str, Any],
        judge: Callable[[T], bytes | None],
        extensions: Set[str],
        most_depth: int,
        most_url: int,
        /,
    ) -> dict[bytes, T]:
        """What no gate refuses, the first of each key; ``judge`` is asked for the key of what is not plain."""

    def settled(self, found: list[Any], start: int, front: str, room: int, index: tuple[Any, ...] | None, /) -> int:
        """How many from a place on are of one host and allowed by an index of ``Matcher``."""

    def rows(self, found: list[Any], start: int, arrival: int, kind: type[T], /) -> list[T]:
        """The rows of those from a place on that are of one host and have no flags; their arrivals go up."""

    def put_rows(
        self,
        rows: Iterable[Any],
        prefix: bytes,
        last: bytes,
        put: Callable[..., None],
        queue: object,
        seen: object,
        pack: Callable[[Any], bytes],
        /,
    ) -> dict[bytes, bytes]:
        """``put_rows_in_python``."""

    def census(
        self,
        hosts: list[tuple[str, bytes]],
        leased: frozenset[str],
        now: float,
        latest: float,
        leave_alone_seconds: float,
        column: int,
        state: int,
        queued: bool,
        first: tuple[float, str | None],
        slowest: tuple[float, str | None],
        /,
    ) -> tuple[Any, ...]:
        """Hosts summed up, and those of which Python has to make a row; ``census.c`` says what is what."""

    def members(
        self, data: bytes, at: int, most: int, offset: int, kind: type[T], /
    ) -> tuple[int, list[T], bytes | None]:
        """Where they end, the plain records of gzip members from a place on, and what the first holds that is not so.

        Neither: Python has to inflate it.
        """

    def holds(self, fields: Any, block: bytes, /) -> bool:
        """Whether a record's digests hold; False: Python has to judge it."""

    def row(self, fields: Any, block: bytes, /) -> tuple[str, str, str, str, int, str, str] | None:
        """What an index says of a plain record; None: Python has to judge it."""

    def capture(self, kind: type[T], wire: Any, /, *found: Any) -> T | None:
        """``capture_in_python`` as a Capture; None where something is odd."""

    def log_line(self, result: Any, written: tuple[Any, ...] | None, now: float, /) -> bytes | None:
        """The packed line of a page; None of one that was in the browser, and where something is odd."""

    def sealed(self, fields: str, block: bytes, body: bytes, /) -> bytes:
        """A WARC record: ``fields`` with their first line, its digest and length, and its block: both one."""

    def short(self, fields: str, block: bytes, /) -> bytes | None:
        """The gzip member of such a record; None of one over 4 KB, or not of ASCII: it is compressed elsewhere."""

    def ids(self, random: bytes, /) -> tuple[str, ...]:
        """Of each 16 bytes a record id."""

    def head(self, head: bytes, body_bytes: int, /) -> tuple[str, bool] | None:
        """Media type of an HTTP head, and whether its body is compressed; None: it is not stored as it came, or odd."""

    def base32(self, data: bytes, /) -> str:
        """Bytes in groups of five, as a digest is written."""

    def near(self, values: array[int] | memoryview, value: int, bits: int, /) -> list[tuple[int, int]]:
        """Places of the values within ``bits`` of ``value``, and their distances."""

    def scores(
        self,
        steps: NDArray[np.uint32],
        states: NDArray[np.int32],
        places: array[int],
        table: NDArray[np.float32],
        text: bytes,
        /,
    ) -> bytes:
        """What the features of a language model in a text add to each class: float32; b"" of a text without any."""


class Choice(NamedTuple):
    """Which reader is in use."""

    page: Page | None
    why: str  # pages are read in Python; empty if they are not
    wrong: bool = False  # it is there and cannot be used, which needs an operator

    @property
    def sentence(self) -> str:
        """For an operator: ``native``, or ``Python`` and why."""
        return f"Python ({self.why})" if self.page is None else "native"


choice: Choice
"""The reader in use, found out when it or ``reader`` is asked for first; what cannot be used is warned of then."""
reader: Page | None
"""The native reader; None: read in Python."""


def __getattr__(name: str) -> Any:
    if name not in ("choice", "reader"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    choose(AUTO)
    return globals()[name]


def choose(wanted: str) -> Choice:
    """Use the native reader if it is ``wanted`` and there."""
    found = _found(wanted)
    globals().update(choice=found, reader=found.page)
    if found.wrong:
        logger.warning("Pages are read in Python: %s; make builds it again", found.why)
    return found


def digest() -> str:
    """Of what the extension is built from, 16 hexadecimal digits; empty in an installed package without sources."""
    ours = sorted(HERE.glob("*.[ch]"))
    if not ours:
        return ""
    found = sha256(lexbor_pin())
    for path in [*ours, HERE / "build.py", PATCH]:
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def lexbor_pin() -> bytes:
    """The entry of selectolax in requirements.lock, whose source distribution holds lexbor: version and hashes."""
    _, name, behind = _LOCK.read_bytes().partition(b"\nselectolax==")
    return re.split(rb"\n(?! )", name.lstrip() + behind, maxsplit=1)[0]


def _found(wanted: str) -> Choice:
    if wanted == NEVER:
        return Choice(None, "NATIVE_READER is never")
    if os.environ.get(ENVIRONMENT) == "0":
        return Choice(None, f"{ENVIRONMENT}=0 is in the environment")
    try:
        module = import_module(f"{__name__}.{MODULE}")
    except ModuleNotFoundError:
        if others := sorted(path.name for path in HERE.glob(f"{MODULE}.*{SUFFIX}")):
            return Choice(None, f"the native reader was built for another Python ({others[0]})", wrong=True)
        return Choice(None, "the native reader has not been built")
    except ImportError as error:
        return Choice(None, f"the native reader cannot be loaded ({error})", wrong=True)
    if (ours := digest()) and getattr(module, "SOURCES", "") != ours:
        return Choice(None, "the native reader was built from other sources", wrong=True)
    return Choice(cast(Page, module), "")
