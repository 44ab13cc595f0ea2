"""What the commands about a folder share."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlerproject.commands.base import Bytes, named_archives, waited_for
from crawlerproject.errors import OperatorError

SETTINGS = {"STATE_URL": "rocksdb:"}


def test_the_folder_is_the_argument_or_crawl_dir(tmp_path: Path) -> None:
    """And it must hold an archive."""
    given = Settings({**SETTINGS, "CRAWL_DIR": str(tmp_path)})
    with pytest.raises(OperatorError, match=r"holds no crawl: there is no WARC file in .*/warc"):
        named_archives([], given)
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc" / "a.warc.gz.open").touch()
    elsewhere = Settings({**SETTINGS, "CRAWL_DIR": ""})
    assert named_archives([], given) == named_archives([str(tmp_path)], elsewhere) == (tmp_path, [tmp_path], ())
    with pytest.raises(OperatorError, match=r"There is no folder .*nowhere; name a crawl's folder, or set CRAWL_DIR"):
        named_archives([str(tmp_path / "nowhere")], given)


def test_waiting_ends_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at once, and again until then."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    assert waited_for(lambda: True, 15.0) == 0.0
    assert waited_for(lambda: now[0] >= 3.0, 15.0) == pytest.approx(3.0, abs=0.2)


def test_waiting_ends_when_patience_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller looks once more."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    assert waited_for(lambda: False, 15.0) == pytest.approx(15.0, abs=0.2)


def test_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no terminal shows a bar: on standard errors, every ten seconds."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Bytes("Reading", 3000) as progress:
        for now[0] in (1.0, 11.0, 12.0, 22.0):
            progress.advance(1000)
    assert capsys.readouterr() == ("", "Reading: 2,000 of 3,000 bytes\nReading: 4,000 of 3,000 bytes\n")
