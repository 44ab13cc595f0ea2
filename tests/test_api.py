"""The Python API: the examples of its page as they stand there, and what they leave out."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.api import Crawl, CrawlStatus, start
from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.batch.warc_extract import PAGE_SCHEMA
from crawlerproject.errors import OperatorError
from tests.commands.crawled import ask
from tests.commands.running import archive
from tests.commands.status_schema import SCHEMA
from tests.stores.redis_servers import redis_server
from tests.web.running import IDENTITY, PROJECT, RunningWeb, one_pace, small_settings, synthetic_web
from tests.web.waiting import wait_until

PAGE = (PROJECT / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
# Installed by `make frames` alone: beside pandas Arrow imports it in every process, the crawl's included.
HEAVY = ("pandas", "polars", "datasets", "pyspark")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """The small web, and an environment in which a crawl of it needs no other settings."""
    with synthetic_web(tmp_path_factory.mktemp("web")) as web, pytest.MonkeyPatch.context() as patch:
        known = {
            **IDENTITY, **small_settings(web), **one_pace(0.02), "PACE_PER_IP": "False",
            "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        }  # fmt: skip
        for name, value in known.items():
            patch.setenv(f"POLITE_{name}", value)
        patch.setenv("PYTHONPATH", str(PROJECT))
        yield web


@pytest.fixture(scope="module")
def folder(web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crawl of the page's examples, which are run here, in a running loop as in a notebook."""
    home = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        asyncio.run(run_examples(f"http://plain1.test:{web.port}/"))
    return home / "crawls" / "example"


async def run_examples(seed: str) -> None:
    """One after the other, with the same names; those that need what is not installed are left out."""
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        if any(word in example and find_spec(word) is None for word in HEAVY):
            continue
        code = compile(
            example.replace("https://example.org/", seed), "docs/python.md", "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )  # fmt: skip
        result = eval(code, names)
        if inspect.iscoroutine(result):
            await result
    assert names["words"] > 100
    assert names["status"].finish_reason == "finished"
    assert len(names["found"]) > 3


def test_the_examples_of_the_page_run(folder: Path) -> None:
    """And leave a crawl that has ended, each of whose pages is a row and a record."""
    crawl = Crawl(folder)
    assert not crawl.running
    rows = [url for batch in crawl.pages(["url"]) for url in batch.column("url").to_pylist()]
    records = {record.url: record for record in crawl.records()}
    assert len(rows) > 3
    assert set(rows) <= records.keys()
    first = records[rows[0]]
    assert (first.body or b"").lstrip().startswith(b"<")
    assert (first.mime, first.rendered) == ("text/html", False)
    assert first.headers["content-type"].startswith("text/html")


def test_the_status_is_that_of_the_command(folder: Path) -> None:
    """Figure by figure; and each that its schema promises has a field."""
    status = Crawl(folder).status()
    told = ask(folder, "status")
    assert {name: getattr(status, name) for name in told if name != "said_seconds_ago"} == {
        name: value for name, value in told.items() if name != "said_seconds_ago"
    }
    names = {each.name for each in fields(CrawlStatus)}
    assert set(SCHEMA["required"]) | {"workers"} == names == set(SCHEMA["properties"])


def test_what_cannot_begin_is_one_sentence(web: RunningWeb, tmp_path: Path) -> None:
    """At once, as the command says it; so is a folder that holds nothing."""
    with pytest.raises(OperatorError, match=r"^The seeds file nosuch\.txt does not exist; [^\n]*$"):
        start("nosuch.txt", tmp_path / "crawl")
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match="file cannot be used"):
        start(["http://plain1.test/"], tmp_path / "file")
    with pytest.raises(OperatorError, match="name a crawl's folder, or set CRAWL_DIR"):
        Crawl(tmp_path / "nothing").status()
    with pytest.raises(OperatorError, match="there is no WARC file"):
        next(Crawl(tmp_path / "nothing").records())


def test_a_crawl_outlives_the_script_that_began_it(web: RunningWeb, tmp_path: Path) -> None:
    """Which is killed; whoever comes next finds it at work, and stops it at the end of a block."""
    folder, code = tmp_path / "crawl", "import sys, time, crawlerproject.api as api"
    slow = {"PACE_MIN_SECONDS": 1, "PACE_START_SECONDS": 1, "PACE_MAX_SECONDS": 1}
    code += f"; api.start([sys.argv[1], sys.argv[1] + 'a,b'], {str(folder)!r}, settings={slow!r})"
    script = subprocess.Popen([sys.executable, "-c", f"{code}; time.sleep(600)", f"http://plain1.test:{web.port}/"])
    try:
        crawl = Crawl(folder)
        wait_until(lambda: crawl.running, "it is at work")
    finally:
        script.kill()
        script.wait()
    with crawl:
        assert next(iter(crawl.watch())).running
        with pytest.raises(TimeoutError):
            crawl.wait(timeout_seconds=0.1)
        with pytest.raises(OperatorError, match="is in use by a running crawl"):
            start(folder=folder)
    assert not crawl.running
    assert crawl.status().finish_reason == "stopped"
    assert "a,b" in (folder / "seeds.txt").read_text()


@pytest.mark.parametrize("shared", [False, True], ids=["local", "redis"])
def test_a_fleet_is_stopped_and_goes_on(web: RunningWeb, tmp_path: Path, shared: bool) -> None:
    """By a script that has not begun it; workers and supervisor end in good order, and the next start has the rest."""
    with ExitStack() as stack:
        settings: dict[str, Any] = {
            f"PACE_{name}_SECONDS": 3 for name in ("MIN", "START", "MAX")
        }  # it is not done too soon
        if shared:
            settings["STATE_URL"] = stack.enter_context(redis_server(tmp_path / "redis")).url
        folder, seeds = tmp_path / "crawl", [f"http://plain{number}.test:{web.port}/" for number in (1, 2, 3)]
        begun = stack.enter_context(start(seeds, folder, settings=settings, arguments={"scope": "host"}, workers=2))
        crawl = Crawl(folder, settings)
        wait_until(lambda: crawl.status().pages > 1, "pages come")
        crawl.stop()
        ended = begun.wait(timeout_seconds=60)
        assert not crawl.running
        assert ended.finish_reason == "stopped"  # whether the order or its supervisor came first
        assert not ended.running
        before = {record.url for record in crawl.records()}
        with start(folder=folder, settings=settings, workers=2) as again:
            wait_until(
                lambda: (again.status().totals or {}).get("pages", 0) > (ended.totals or {})["pages"], "it goes on"
            )
        assert not again.running
    assert {record.url for record in crawl.records()} > before


def test_pages_of_an_earlier_version_have_the_same_columns(tmp_path: Path) -> None:
    """Its ``metadata`` is a map, and other columns were not there yet."""
    crawl = Crawl(archive(tmp_path))
    (warc,) = (crawl.folder / "warc").iterdir()
    process_warc(warc, crawl.folder / "processed", ExtractOptions())
    (path,) = crawl.page_files()
    table = pq.read_table(path)
    entries = [[tuple(line.values()) for line in lines] for lines in table.column("metadata").to_pylist()]
    metadata = pa.array(entries, pa.map_(pa.string(), pa.string()))
    earlier = table.select(["url", "fetch_time"]).append_column("metadata", metadata)
    pq.write_table(earlier, path)

    (batch,) = crawl.pages()

    assert batch.schema == PAGE_SCHEMA
    assert batch.column("metadata").to_pylist() == table.column("metadata").to_pylist() != []
    assert batch.column("text").null_count == len(batch)
    with pytest.raises(ValueError, match="'words_' is no column"):
        next(crawl.pages(["words_"]))


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_frame_without_its_library_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=f"^to_{name}\\(\\) needs {name}, which is not installed: pip install {name}$"
    ):
        getattr(Crawl("nowhere"), f"to_{name}")()


def test_a_scripts_numpy_keeps_its_threads() -> None:
    """And nothing that a script may not want is imported with the module."""
    code = "import crawlerproject.api, json, os, sys; print(json.dumps([dict(os.environ), list(sys.modules)]))"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    told = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, env=environment, capture_output=True, check=True)
    environs, modules = json.loads(told.stdout)
    assert "OPENBLAS_NUM_THREADS" not in environs
    assert {"numpy", "pyarrow", "scrapy", "twisted"} & set(modules) == set()
