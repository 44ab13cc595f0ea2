"""``scrapy process`` as tasks of Spark: a WARC a task, by the function that the local engine calls.

Executors read the WARCs and write the results by the same paths as the driver: a folder that all of them see. The
crawler is installed there as it is here; a worker with another version says so and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.batch.engines.spark import environment
from crawlerproject.batch.process import Outcome, is_done, process_all, remaining
from crawlerproject.batch.warc_extract import Wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Between two looks at how far the workers are (ours).
_LOOK_SECONDS = 0.5


def process_on_spark(
    spark: SparkSession, warcs: list[Path], out: Path, wanted: Wanted, done: Callable[[int], None]
) -> list[Outcome]:
    """As ``process_all``: every WARC whose files are not all there yet; ``done`` gets the count of whole files."""
    waiting = remaining(warcs, out, wanted, done)
    if not waiting:
        return []
    context = spark.sparkContext
    read = context.accumulator(0)
    task = partial(process_one, environment(), out, wanted)

    def counted(warc: Path) -> Outcome:
        outcome = task(warc)
        read.add(size_of(warc))
        return outcome

    job = context.parallelize(waiting, len(waiting)).map(counted)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(job.collect)
        said = 0
        try:
            while not answer.done():
                wait([answer], timeout=_LOOK_SECONDS)
                now = int(read.value)
                done(now - said)
                said = now
        except BaseException:  # the operator's Ctrl-C: tasks that run would hold the end up
            context.cancelAllJobs()
            raise
        outcomes: list[Outcome] = answer.result()
    for number, warc in enumerate(waiting):
        if not outcomes[number].problem and not is_done(warc, out, wanted):
            outcomes[number] = Outcome(
                f"{warc.name} is processed, but its files are not in {out}; name a folder with --out that this "
                "machine and all workers see by this path."
            )
    return [outcome for outcome in outcomes if outcome != Outcome()]


def process_one(driver: str, out: Path, wanted: Wanted, warc: Path) -> Outcome:
    """The task: one WARC, in a process of its own below the executor, as the local engine has it.

    ``driver``: the ``environment()`` there.
    """
    if (here := environment()) != driver:
        return Outcome(f"{warc.name} is left out: a worker has {here}, this machine has {driver}.")
    outcomes = process_all([warc], out, wanted, 1, lambda read: None)
    return outcomes[0] if outcomes else Outcome()


def size_of(warc: Path) -> int:
    """Bytes of a file; 0 where it is not, which its outcome says."""
    try:
        return warc.stat().st_size
    except OSError:
        return 0
