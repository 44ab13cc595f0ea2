"""``scrapy process`` as tasks of Spark: what a task does, without Spark; ``make bench-engines`` has it with Spark."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from crawlerproject.batch.process_warcs import ExtractOptions, Outcome, process_warc
from crawlerproject.batch.spark import environment, process_one, sentence, session
from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import archive, scrapy

WANTED = ExtractOptions(wet=True, wat=True)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> CrawlDir:
    """A crawl with one WARC file."""
    return CrawlDir(archive(tmp_path_factory.mktemp("spark")))


def test_a_task_makes_the_files_of_the_local_engine(crawl: CrawlDir, tmp_path: Path) -> None:
    """Byte for byte, in a process of its own; what is done is not done again, and what goes there can be sent."""
    (warc,) = crawl.closed_warcs()
    process_warc(warc, tmp_path / "local", WANTED)

    for _ in range(2):
        outcome = process_one(environment(), tmp_path / "task", *pickle.loads(pickle.dumps((WANTED, warc))))
        assert pickle.loads(pickle.dumps(outcome)) == Outcome()

    made = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (tmp_path / "local", tmp_path / "task")
    ]
    assert len(made[0]) == 4
    assert made[1] == made[0]


def test_a_worker_with_another_version_does_nothing(crawl: CrawlDir, tmp_path: Path) -> None:
    """It says which it has: its rows might be others."""
    (warc,) = crawl.closed_warcs()

    outcome = process_one("crawlerproject 0", tmp_path / "out", WANTED, warc)

    assert warc.name in outcome.problem
    assert f"a worker has {environment()}, this machine has crawlerproject 0" in outcome.problem
    assert not (tmp_path / "out").exists()


def test_a_worker_that_does_not_see_the_file_says_so(tmp_path: Path) -> None:
    """It costs that file only."""
    outcome = process_one(environment(), tmp_path / "out", WANTED, tmp_path / "none.warc.gz")

    assert outcome == Outcome("none.warc.gz: No such file or directory")


def test_sparks_many_lines_become_a_sentence() -> None:
    """The last error of Python's own that it quotes, else its first line."""
    quoted = (
        "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 1 times\n"
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "worker.py", line 4197, in invoke_udf\n'
        "ModuleNotFoundError: No module named 'crawlerproject'\n"
        "\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handle(PythonRunner.scala:1097)\n"
    )

    assert sentence(quoted) == "ModuleNotFoundError: No module named 'crawlerproject'"
    assert sentence("[JAVA_GATEWAY_EXITED] Java gateway process exited.\nmore") == (
        "[JAVA_GATEWAY_EXITED] Java gateway process exited"
    )


def test_without_spark_it_is_a_sentence(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install; and workers are the master's."""
    monkeypatch.setitem(sys.modules, "py4j.protocol", None)
    with pytest.raises(OperatorError, match=r"requirements-engines\.txt"), session("local[2]"):
        pass

    asked = scrapy("process", str(crawl), "--engine", "spark")
    both = scrapy("process", str(crawl), "--engine", "spark", "--workers", "2")

    assert (asked.returncode, both.returncode) == (2, 2)
    assert "PySpark is not installed" in asked.stderr
    assert "--master local[2] instead of --workers" in both.stderr
    assert not crawl.processed.exists()
