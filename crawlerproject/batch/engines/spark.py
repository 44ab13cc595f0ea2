"""A session of Spark, and its errors in a sentence. Needs PySpark and a Java; ``requirements-engines.txt`` pins it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from crawlerproject import __version__
from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_APPLICATION = "crawlerproject"
# What makes rows of a page: with other versions of these a worker may make others.
_DECISIVE = ("pyarrow", "selectolax", "py3langid", "pypdfium2")
_LOCAL = "local"
# What fails comes back as an exception, and is a sentence of ours; Spark would write some sixty lines of each before.
_ALWAYS = {"spark.log.level": "FATAL", "spark.ui.showConsoleProgress": "false"}
# Of a master on this machine: no port that others could reach, and no page that would stay open while it works.
_LOOPBACK = "127.0.0.1"
_ON_LOOPBACK = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.ui.enabled": "false",
}
# The last line of a traceback of Python's, as Spark quotes it among its own.
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): .+)$", re.MULTILINE)


@contextmanager
def session(master: str) -> Iterator[SparkSession]:
    """A session at ``master``, closed at the end; Spark's own configuration files count as always.

    Raises OperatorError: PySpark or Java is missing, the master does not answer, or what was done there failed.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise OperatorError(
            "Spark is asked for and PySpark is not installed; install it with pip install -r requirements-engines.txt."
        ) from None
    if not _has_java():
        raise OperatorError("Spark needs a Java and there is none; install one (Debian: default-jre-headless).")
    # Else Spark starts the first python3 on a worker's path. The same environment stands at the same path there.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith(_LOCAL):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = SparkSession.builder.master(master).appName(_APPLICATION)
    for name, value in (_ALWAYS | (_ON_LOOPBACK if master.startswith(_LOCAL) else {})).items():
        builder = builder.config(name, value)
    spark = None
    try:
        spark = builder.getOrCreate()
        yield spark
    except (Py4JError, PySparkException) as error:
        raise OperatorError(f"Spark at {master} could not do it: {sentence(str(error))}.") from error
    finally:
        if spark is not None:
            spark.stop()


def sentence(error: str) -> str:
    """What went wrong on a worker, or at Spark's own start, out of the many lines that Spark says."""
    found = _PYTHON_ERROR.findall(error)
    return str(found[-1] if found else error.strip().partition("\n")[0]).strip().rstrip(".")


def environment() -> str:
    """What must be the same here and on every worker, so that the same WARC gives the same files."""
    return ", ".join([f"crawlerproject {__version__}", *(f"{name} {version(name)}" for name in _DECISIVE)])


def _has_java() -> bool:
    """Where PySpark looks for it."""
    home = os.environ.get("JAVA_HOME")
    return os.access(os.path.join(home, "bin", "java"), os.X_OK) if home else shutil.which("java") is not None
