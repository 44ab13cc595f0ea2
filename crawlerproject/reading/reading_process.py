"""``python -m crawlerproject.reading.reading_process BYTES SECONDS``: reads bodies within these limits.

They are of memory and CPU time. A job on standard input is a head of two lengths, a pickled ``Job`` and the body; a
part on standard output is a length and a pickle. The process ends when the crawl closes its input.
"""

from __future__ import annotations

import math
import os
import pickle
import resource
import signal
import struct
import sys
import time
from typing import BinaryIO

HEAD = struct.Struct(">II")
"""The head of a job: bytes of the pickle, bytes of the body."""
LENGTH = struct.Struct(">I")
"""The head of a part: bytes of the pickle."""

# A process above this is replaced, since it keeps the memory that a large page took (ours; it starts with 90 MB).
_MOST_KEPT_BYTES = 512 * 1024 * 1024
_STATM = "/proc/self/statm"  # proc(5): the second number is the resident set, in pages


def main() -> None:
    """Read jobs until the input ends. EOFError: it ends within one; BrokenPipeError: the crawl has exited."""
    from crawlerproject.reading.jobs import read

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the crawl
    most_bytes, most_seconds = int(sys.argv[1]), float(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    jobs, parts = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # keep the prints of libraries out of the parts
    while head := jobs.read(HEAD.size):
        job_bytes, body_bytes = HEAD.unpack(_whole(head, HEAD.size))
        job, body = pickle.loads(_whole(jobs.read(job_bytes), job_bytes)), _whole(jobs.read(body_bytes), body_bytes)
        # The kernel enforces the limit (SIGXCPU) even inside a C extension, and when the crawl has exited.
        until = math.ceil(time.process_time() + most_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        try:
            for name, part in read(job, body):
                last = name == "page" and _resident_bytes() > _MOST_KEPT_BYTES
                _write(parts, ("retiring" if last else name, part))
        except MemoryError:
            _write(parts, ("failed", f"more than {most_bytes:,} bytes of memory"))
        except Exception as error:
            _write(parts, ("failed", f"{type(error).__name__}: {error}"))
        parts.flush()


def _whole(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise EOFError("the crawl exited in the middle of a job")
    return data


def _resident_bytes() -> int:
    """Not getrusage's peak: a process that was just started has that of the one that started it."""
    with open(_STATM, "rb") as fields:
        return int(fields.read().split()[1]) * resource.getpagesize()


def _write(parts: BinaryIO, part: tuple[str, object]) -> None:
    packed = pickle.dumps(part, pickle.HIGHEST_PROTOCOL)
    parts.write(LENGTH.pack(len(packed)) + packed)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, EOFError):
        os._exit(0)  # nothing is waited for any more, and what is buffered can be written nowhere
