"""``python -m benchmarks.side_by_side.sampled OUT MODULE [ARGUMENTS]``: run a module and note where its CPU goes.

A timer that counts CPU interrupts every two milliseconds, and the function that runs then has spent them: what it calls
in C included, without what Python's own profiler adds to every call. The counts go to OUT as JSON.
"""

from __future__ import annotations

import atexit
import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

STEP_SECONDS = 0.002
Place = tuple[str, str]  # file, function


def _place(frame: FrameType) -> Place:
    return frame.f_code.co_filename, frame.f_code.co_qualname


class Samples:
    """Times that a function was found running itself, and with what it calls."""

    def __init__(self) -> None:
        self.own: Counter[Place] = Counter()
        self.whole: Counter[Place] = Counter()

    def take(self, signum: int, frame: FrameType | None) -> None:
        """One moment."""
        if frame is None:
            return
        self.own[_place(frame)] += 1
        met: set[Place] = set()
        while frame is not None:
            met.add(_place(frame))
            frame = frame.f_back
        self.whole.update(met)

    def write(self, path: Path) -> None:
        """[[file, function, own, whole], ...], the dearest first."""
        path.write_text(json.dumps([[*place, count, self.whole[place]] for place, count in self.own.most_common()]))


def main() -> None:
    """Sample until the module ends."""
    output, module = Path(sys.argv[1]), sys.argv[2]
    samples = Samples()
    signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS, STEP_SECONDS)

    def end() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        samples.write(output)

    atexit.register(end)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
