"""What is done next with a file of the archive that goes to another place, and when the other place is believed.

A file goes through the stages in their order; only what contradicts its copy there sends it back to the first. Nothing
is removed before the other side has named the size and the digest that were measured here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from crawlerproject.rules.printable import without_passwords

FIRST_PART_BYTES = 8 * 1024 * 1024
"""Of a file that goes up in parts; S3 takes none under 5 MiB but the last."""
MOST_PARTS = 10_000
"""Of one object in S3: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html."""
SCHEMES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "file": ""}
"""Of addresses, with the package that each needs."""
# A far side that refuses is asked again after so long, each time twice as late: a restart takes seconds, a full
# quota is mended by a person.
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 2.0, 300.0
_LONGEST_NAME_BYTES = 255  # of a file, in what Linux has
# What must not be repeated: signatures and keys that clouds put into queries and headers.
_SECRET = re.compile(
    r"(?i)((?:\bsig|signature|token|secret|password|accountkey|awsaccesskeyid|x-amz-[a-z-]{1,40})=)[^&\s\"'<>;]{1,4096}"
    r"|(\bauthorization['\"]?[:=] ?)[^\s,]{1,256}(?: [^\s,]{1,4096})?"
)


class Stage(StrEnum):
    """How far a file has come."""

    LOCAL = "local"
    UPLOADING = "uploading"
    UPLOADED = "uploaded"
    CONFIRMED = "confirmed"
    REMOVED = "removed"  # the copy there is the only one that counts


class Step(StrEnum):
    """What is done next."""

    NOTHING = "nothing"
    SEND = "send"
    CONFIRM = "confirm"
    FORGET = "forget"


class Here(NamedTuple):
    """A file in the crawl's folder, as a look at the folder tells it from a changed one."""

    size: int
    mtime_ns: int


class Measured(NamedTuple):
    """What was sent: bytes, and their digests in hex. ``etag``: S3's, of a file in parts that of its parts' digests."""

    size: int
    sha256: str
    md5: str
    etag: str


class Upload(NamedTuple):
    """What is known of one file. ``token`` names what was begun there, where such a thing has a name."""

    stage: Stage
    here: Here
    measured: Measured
    token: str = ""


class Seen(NamedTuple):
    """What the other side says of a file; ``digests`` of any kind, in hex or as an ETag."""

    size: int
    digests: frozenset[str] = frozenset()


def next_step(known: Upload | None, here: Here | None) -> Step:
    """What to do with a file: ``known`` from earlier, ``here`` as it lies in the folder now, or None."""
    if here is None:
        # Removed by hand: what is there may still be confirmed, and nothing can be sent.
        if known is None or known.stage in (Stage.CONFIRMED, Stage.REMOVED):
            return Step.NOTHING
        return Step.CONFIRM if known.stage is Stage.UPLOADED else Step.FORGET
    if known is None or known.here != here or known.stage in (Stage.LOCAL, Stage.UPLOADING):
        return Step.SEND
    return Step.CONFIRM if known.stage is Stage.UPLOADED else Step.NOTHING


def agrees(measured: Measured, seen: Seen | None) -> bool | None:
    """Whether what lies there is what was sent; None when only its bytes can tell."""
    if seen is None or seen.size != measured.size:
        return False
    if seen.digests & {measured.sha256, measured.md5, measured.etag}:
        return True
    return None  # a digest of another kind: an ETag of an encrypted object is no MD5


def part_bytes(size: int) -> int:
    """How large the parts are in which a file of ``size`` bytes goes up."""
    return max(FIRST_PART_BYTES, -(-size // MOST_PARTS))


def retry_seconds(failures: int, chance: random.Random) -> float:
    """How long a far side that has refused ``failures`` times in a row is left alone; spread over a quarter."""
    longest = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 20))
    return longest * chance.uniform(0.75, 1.0)


def bounded_pause(sent_bytes: int, spent_seconds: float, most_per_second: float) -> float:
    """Seconds to wait so that so many bytes in so long are no more than ``most_per_second``; 0: no bound."""
    return max(0.0, sent_bytes / most_per_second - spent_seconds) if most_per_second else 0.0


def is_plain_name(name: str) -> bool:
    """Whether a name that the far side lists is one of a file or folder, and leads nowhere else."""
    fits = 0 < len(name.encode(errors="replace")) <= _LONGEST_NAME_BYTES
    return fits and name not in (".", "..") and "/" not in name and name.isprintable()


def manifest(uploads: Iterable[tuple[str, Upload]]) -> bytes:
    """The list of what lies there, as ``sha256sum -c`` and BagIt (RFC 8493 2.1.3) have it."""
    there = (
        (name, known.measured.sha256) for name, known in uploads if known.stage in (Stage.CONFIRMED, Stage.REMOVED)
    )
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(there)).encode()


def address_problem(url: str) -> str:
    """Why an address cannot be one of an archive, in words that hold nothing secret; "" when it can."""
    try:
        parts = urlsplit(url)
        user = parts.username or parts.password or "@" in parts.netloc
    except ValueError:
        return "it is no address"
    if parts.scheme not in SCHEMES or "://" not in url:
        return f"it must begin with one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}"
    if user or parts.query or parts.fragment:
        return "it has a key in it, which would end in logs: keys belong into the environment or the cloud's own file"
    if parts.scheme == "file":
        return "" if parts.path.strip("/") and not parts.netloc else "it must name a folder, as file:///srv/archive"
    if not parts.netloc:
        return "it must name a bucket, as s3://bucket/crawl"
    if any(not is_plain_name(part) for part in parts.path.strip("/").split("/") if parts.path.strip("/")):
        return "its path has a part that is no name"
    return ""


def without_secrets(text: str) -> str:
    """What a far side, or its library, says, without what must not be repeated."""
    return _SECRET.sub(lambda found: f"{found[1] or found[2]}***", without_passwords(text))
