"""``scrapy index``: the index made again, and one sentence for whatever is wrong."""

import shutil
from pathlib import Path

from tests.commands.running import archive, scrapy


def test_rebuilds_both(tmp_path: Path) -> None:
    """CDXJ and Parquet come back byte by byte after they were deleted; the WARC stays as it is."""
    folder = archive(tmp_path)
    index = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
    assert {path.suffix for path in index} == {".cdxj", ".parquet"}
    before = [path.read_bytes() for path in index]
    (warc,) = (folder / "warc").iterdir()
    kept = warc.read_bytes()
    for path in index:
        path.unlink()

    done = scrapy("index", str(folder))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"1 WARC file indexed in {folder / 'index'}\n"
    assert [path.read_bytes() for path in index] == before
    assert warc.read_bytes() == kept


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    """What comes before the damage is indexed; exit status 1 and the byte."""
    folder = archive(tmp_path)
    (warc,) = (folder / "warc").iterdir()
    warc.write_bytes(warc.read_bytes()[:-50])

    done = scrapy("index", str(folder))

    assert done.returncode == 1
    assert f"{warc.name} is not good from byte" in done.stderr
    assert "Traceback" not in done.stderr


def test_two_workers_make_the_same(tmp_path: Path) -> None:
    """Each file in another process; a number of workers that is none is refused."""
    folder = archive(tmp_path)
    (warc,) = (folder / "warc").iterdir()
    shutil.copyfile(warc, warc.with_name(warc.name.replace("-00000-", "-00001-")))
    made = []
    for workers in ("1", "2"):
        shutil.rmtree(folder / "index")
        done = scrapy("index", str(folder), "--workers", workers)
        assert (done.returncode, done.stdout[:20]) == (0, "2 WARC files indexed"), done.stderr
        files = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
        made.append({path.name: path.read_bytes() for path in files})

    assert made[0] == made[1]
    assert len([name for name in made[0] if name.endswith(".cdxj")]) == 2
    assert scrapy("index", str(folder), "--workers", "0").returncode == 2
