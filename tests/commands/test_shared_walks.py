"""``scrapy process --verify --index``: what three commands do, on one walk."""

from pathlib import Path

from tests.commands.running import archive, scrapy
from tests.commands.test_verify import spoil, warc_of


def test_three_in_one(tmp_path: Path) -> None:
    """Tables, index and verdict as each command makes them, also where tables are there; of damage the same words."""
    folder = archive(tmp_path)
    index = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
    before = [path.read_bytes() for path in index]
    for path in index:
        path.unlink()

    done = scrapy("process", str(folder), "--verify", "--index", "--workers", "1")

    verified = scrapy("verify", str(folder))
    said = [line for line in done.stderr.splitlines() if not line.startswith("Processing:")]  # where it takes long
    assert (done.returncode, said) == (0, verified.stderr.splitlines())
    assert done.stdout == scrapy("index", str(folder)).stdout + verified.stdout
    assert "all is well" in verified.stdout
    assert [path.read_bytes() for path in index] == before
    (pages,) = (folder / "processed" / "pages").iterdir()
    (links,) = (folder / "processed" / "links").iterdir()

    spoil(warc_of(folder), 0.5)
    made = pages.read_bytes()
    for kept in (True, False):
        done = scrapy("process", str(folder), "--verify", "--index")
        alone = scrapy("index", str(folder)), scrapy("verify", str(folder))
        assert done.returncode == 1
        assert all(line in done.stderr for each in alone for line in each.stderr.splitlines())
        assert done.stdout == "".join(each.stdout for each in alone)
        assert (pages.read_bytes() == made) is kept
        pages.unlink()
        links.unlink()
    assert "is damaged at byte" in done.stderr
