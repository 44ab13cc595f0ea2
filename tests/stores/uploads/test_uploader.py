"""An archive on its way to a real S3 server: everything arrives once, whatever fails, and nothing goes too early."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crawlerproject.errors import OperatorError, TargetError
from crawlerproject.rules.archive import upload_rules
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.uploads import upload_target
from crawlerproject.stores.uploads.upload_journal import Journal
from crawlerproject.stores.uploads.upload_process import UploadProcess
from crawlerproject.stores.uploads.uploader import MANIFEST, Uploader, UploadOptions
from tests.stores.uploads.folders import LARGE, PART_BYTES, TODAY, archived, crawl_folder, local, nothing_lost
from tests.stores.uploads.s3_servers import (
    BUCKET,
    KEYS,
    SECRET,
    SERVER,
    Answer,
    Asked,
    Cut,
    Fault,
    Once,
    Proxy,
    S3Server,
    error,
    proxied,
    s3_server,
)
from tests.web.ports import free_port
from tests.web.waiting import busyness

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="make test makes .venv-tools")

_NUMBERS = count()


@pytest.fixture(scope="module")
def server() -> S3Server:
    """Of all tests."""
    return s3_server()


@pytest.fixture(scope="module")
def between(server: S3Server) -> Iterator[tuple[Proxy, Any]]:
    """What stands before the server, and the client that asks it: keys and endpoint are of the environment."""
    with proxied(server.port) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": made.url}.items():
            patch.setenv(name, value)
        yield made, upload_target.filesystem("s3://any")


@pytest.fixture
def proxy(between: tuple[Proxy, Any], monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """The same without a fault. To make a client takes half a second, so that all have one."""
    made, client = between
    made.fault, made.asked = Fault(), []
    monkeypatch.setattr(upload_rules, "FIRST_PART_BYTES", PART_BYTES)
    monkeypatch.setattr(upload_target, "filesystem", lambda url: client)
    return made


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl's folder, of which each test has a copy."""
    return crawl_folder(tmp_path_factory.mktemp("crawl"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> CrawlDir:
    """The copy."""
    return CrawlDir(shutil.copytree(original, tmp_path / "crawl"))


class Sent:
    """A folder and its place in the bucket."""

    def __init__(self, folder: CrawlDir, server: S3Server, *, keep_local: bool = True, read_back: bool = False) -> None:
        self.folder = folder
        self.prefix = f"crawl-{next(_NUMBERS)}"
        self.url = f"s3://{BUCKET}/{self.prefix}"
        self.wanted = local(folder)
        self._server = server
        self._options = UploadOptions(keep_local, read_back, clock=lambda: 1.8e9)
        self.uploader = self.anew()

    def anew(self) -> Uploader:
        """As a process that has just begun has it."""
        journal = Journal(self.folder)
        journal.open(self.url)
        self.uploader = Uploader(self.folder, partial(upload_target.open_target, self.url), journal, self._options)
        return self.uploader

    def there(self) -> dict[str, bytes]:
        """What the server has."""
        return self._server.under(self.prefix)

    def until_done(self, most: int = 10) -> list[str]:
        """Rounds until one ends well; what the others said. At each end nothing is lost."""
        said: list[str] = []
        for _ in range(most):
            try:
                self.uploader.round(ended=True)
            except TargetError as refused:
                said.append(str(refused))
                nothing_lost(self.wanted, self.folder, self.there())
                self.anew()
                continue
            return said
        raise AssertionError(said)

    def is_whole(self) -> None:
        """Everything is there, once, and nothing is left half done."""
        there = self.there()
        assert archived(there) == self.wanted
        assert self._server.unfinished(self.prefix) == []
        lines = [line.split("  ") for line in there[MANIFEST].decode().splitlines()]
        listed = {name: digest for digest, name in lines}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in there.items()}
        assert listed == {name: digests[name] for name in digests if name not in (MANIFEST, "uploaded-by.json")}


@pytest.fixture
def sent(folder: CrawlDir, server: S3Server, proxy: Proxy) -> Sent:
    """A crawl's folder that is uploaded, and removed where that is confirmed."""
    return Sent(folder, server, keep_local=False)


@pytest.fixture
def short(folder: CrawlDir, server: S3Server, proxy: Proxy) -> Sent:
    """The same with WARC files and their CDXJ alone: fewer requests."""
    shutil.rmtree(folder.parquet)
    shutil.rmtree(folder.log)
    return Sent(folder, server, keep_local=False)


def puts(proxy: Proxy) -> list[str]:
    """The requests that brought bytes, as paths."""
    return [asked.path for asked in proxy.asked if asked.method == "PUT"]


def test_everything_arrives_and_goes_here(sent: Sent, proxy: Proxy) -> None:
    """As it lay in the folder, under the same names; then WARC files and indexes are gone, the log stays."""
    kept = {name for name in sent.wanted if name.startswith("log/")}
    assert sent.until_done() == []

    sent.is_whole()
    there = sent.there()
    assert gzip.decompress(there[f"log/{TODAY}.gz"]) == b'{"day":21}\n'
    assert set(local(sent.folder)) == kept
    before = len(puts(proxy))
    assert sent.until_done() == []
    sent.anew().round(ended=True)
    assert len(puts(proxy)) == before  # nothing is sent twice


def test_what_stays_here_is_sent_once(folder: CrawlDir, server: S3Server, proxy: Proxy) -> None:
    """With ARCHIVE_KEEP_LOCAL; a file whose time changed is read again, one whose bytes changed sent again."""
    sent = Sent(folder, server)
    assert sent.until_done() == []
    sent.is_whole()
    assert local(sent.folder) == sent.wanted
    proxy.asked.clear()

    os.utime(sent.folder.warc / f"{LARGE}.warc.gz", ns=(1, 1))
    sent.uploader.round(ended=True)
    assert puts(proxy) == []

    (sent.folder.index / f"{LARGE}.cdxj").write_text("other\n")
    sent.uploader.round(ended=True)
    assert [path.rpartition("/")[2] for path in puts(proxy)] == [f"{LARGE}.cdxj", MANIFEST]
    assert sent.there()[f"index/{LARGE}.cdxj"] == b"other\n"


def test_the_list_is_one_that_sha256sum_reads(tmp_path: Path, short: Sent) -> None:
    """A copy of the place is checked by the tool that every machine has."""
    short.until_done()
    for name, data in short.there().items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(data)
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", MANIFEST], cwd=tmp_path / "copy", capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def large(part: str) -> Callable[[Asked], bool]:
    """Requests about the large WARC file with this in their query."""
    return lambda asked: f"{LARGE}.warc.gz?" in asked.path and part in asked.path


def to_the_warc(asked: Asked) -> bool:
    """A small WARC file, sent whole."""
    return asked.method == "PUT" and asked.path.endswith("test.warc.gz")


def cut(asked: Asked) -> Answer:
    """The connection ends."""
    raise Cut


def turned_over(asked: Asked) -> Asked:
    """One byte is another, which the server believes."""
    return asked._replace(body=bytes([asked.body[0] ^ 1]) + asked.body[1:])


def refusing(status: int, code: str) -> Callable[[Asked], Answer]:
    """An error of the server's."""
    return lambda asked: error(status, code)


_FAULTS = {
    "cut": Once(to_the_warc, cut, times=2),  # on a connection that was kept open, HTTP itself asks once more
    "cut in a part": Once(large("partNumber=3"), cut, times=2),
    "cut as parts are put together": Once(large("uploadId"), cut, times=2),
    "bad digest": Once(large("partNumber=2"), refusing(400, "BadDigest")),
    "no room": Once(to_the_warc, refusing(507, "InsufficientStorage"), times=2),
    "over quota": Once(large("partNumber=1"), refusing(403, "QuotaExceeded")),
    "busy": Once(to_the_warc, refusing(503, "ServiceUnavailable"), times=3),
    "forbidden": Once(lambda asked: asked.method == "HEAD", lambda asked: Answer(403), times=2),
    "an error with status 200": Once(
        lambda asked: asked.method == "POST" and "uploadId" in asked.path, refusing(200, "InternalError")
    ),
    "an upload that the server forgot": Once(large("partNumber=2"), refusing(404, "NoSuchUpload")),
    "no list of parts": Once(large("uploads"), refusing(501, "NotImplemented")),
}


class Every(Fault):
    """Each of them in turn, at the first request that it is for."""

    def __init__(self, faults: Iterable[Once]) -> None:
        self._faults = list(faults)

    def before(self, asked: Asked) -> Answer | Asked:
        for fault in self._faults:
            if fault.left and (changed := fault.before(asked)) is not asked:
                return changed
        return asked


def test_every_failure_is_tried_again_and_costs_nothing(short: Sent, proxy: Proxy) -> None:
    """One after another: each is said, nothing was lost meanwhile, and in the end everything is there once."""
    proxy.fault = Every(_FAULTS.values())

    said = short.until_done(30)

    assert {name: fault.left for name, fault in _FAULTS.items()} == dict.fromkeys(_FAULTS, 0)
    for word in ("BadDigest", "InsufficientStorage", "QuotaExceeded", "ServiceUnavailable", "403", "InternalError"):
        assert any(word in line for line in said), (word, said)
    assert not any(SECRET in line for line in said)
    short.is_whole()
    assert not list(short.folder.warc.glob("*"))


@pytest.mark.parametrize("chosen", [to_the_warc, large("partNumber=2")], ids=["whole", "part"])
def test_bytes_that_change_on_the_way_are_sent_again(
    short: Sent, proxy: Proxy, chosen: Callable[[Asked], bool]
) -> None:
    """A server that stores them without a word: its digest is another, and so are the bytes when they are read back."""
    proxy.fault = Once(chosen, turned_over)

    assert short.until_done() == []

    assert short.uploader.figures.sent_again == 1
    short.is_whole()


def test_bytes_that_always_change_are_refused(short: Sent, proxy: Proxy) -> None:
    """Some tries a round, a sentence, and the file stays."""
    proxy.fault = Once(to_the_warc, turned_over, times=1000)
    with pytest.raises(TargetError, match="sent 3 times, and what is there is not what was sent"):
        short.uploader.round(ended=True)
    assert f"warc/{LARGE}.warc.gz" in short.there()  # others need not wait for it
    nothing_lost(short.wanted, short.folder, short.there())


class Encrypted(Fault):
    """As a bucket with keys of its own: no ETag is an MD5."""

    def after(self, asked: Asked, answer: Answer) -> Answer:
        if asked.method != "HEAD":
            return answer
        other = '"' + "0" * 32 + '"'
        headers = tuple((name, other if name.lower() == "etag" else value) for name, value in answer.headers)
        return answer._replace(headers=headers)


def test_without_a_digest_of_ours_the_bytes_are_read_back(short: Sent, proxy: Proxy) -> None:
    """What an encrypted bucket says proves nothing, its bytes do."""
    proxy.fault = Encrypted()
    assert short.until_done() == []
    short.is_whole()
    read = {asked.path.rpartition("/")[2] for asked in proxy.asked if asked.method == "GET"}
    assert f"{LARGE}.warc.gz" in read


def test_every_file_is_read_back_when_so_wanted(folder: CrawlDir, server: S3Server, proxy: Proxy) -> None:
    """ARCHIVE_READ_BACK believes no digest that was not made of the bytes."""
    sent = Sent(folder, server, keep_local=False, read_back=True)
    assert sent.until_done() == []
    read = {asked.path.partition(f"{sent.prefix}/")[2] for asked in proxy.asked if asked.method == "GET"}
    assert {name for name, data in sent.wanted.items() if data} <= read


class Losing(Fault):
    """Confirms a file and has lost it a moment later, once."""

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self.lost = ""

    def after(self, asked: Asked, answer: Answer) -> Answer:
        if not self.lost and asked.method == "HEAD" and answer.status == 200 and asked.path.endswith("test.warc.gz"):
            self.lost = asked.path.removeprefix("/")
            self._server.files.rm_file(self.lost)
        return answer


def test_a_file_that_was_confirmed_and_lost_is_sent_again(short: Sent, proxy: Proxy, server: S3Server) -> None:
    """The other side is asked once more before anything is removed."""
    proxy.fault = losing = Losing(server)
    short.until_done()
    assert losing.lost
    assert short.uploader.figures.sent_again == 1
    assert (short.folder.warc / losing.lost.rpartition("/")[2]).exists()

    short.until_done()
    short.is_whole()


def test_what_was_lost_later_is_found_when_asked_for(folder: CrawlDir, server: S3Server, proxy: Proxy) -> None:
    """``scrapy upload --check``: sent again where it is still here, named where it is not."""
    sent = Sent(folder, server)
    sent.until_done()
    server.files.rm_file(f"{BUCKET}/{sent.prefix}/warc/{LARGE}.warc.gz")

    sent.anew().check_again()
    sent.until_done()
    sent.is_whole()

    sent._options = sent._options._replace(keep_local=False)
    sent.anew().round(ended=True)
    server.files.rm_file(f"{BUCKET}/{sent.prefix}/warc/{LARGE}.warc.gz")
    sent.anew().check_again()
    assert sent.uploader.problems == [f"warc/{LARGE}.warc.gz is not there as it was sent, and was removed here"]


def test_a_problem_is_said_until_a_check_finds_none(folder: CrawlDir, tmp_path: Path) -> None:
    """By the processes of later starts as well, for which it is not there to be found."""
    far, name = tmp_path / "far", f"warc/{LARGE}.warc.gz"

    def said(*, check: bool) -> list[str]:
        process = UploadProcess(folder, f"file://{far}", UploadOptions(keep_local=False, clock=lambda: 1.8e9))
        if check:
            process.uploader.check_again()
        process.try_round(ended=True)
        assert not process.error
        problems: list[str] = read_facts(folder.upload_state)["problems"]
        return problems

    assert said(check=True) == []
    kept = (far / name).rename(tmp_path / "kept")
    lost = [f"{name} is not there as it was sent, and was removed here"]
    assert [said(check=False), said(check=True), said(check=False), said(check=True)] == [[], lost, lost, lost]
    kept.rename(far / name)
    assert [said(check=False), said(check=True), said(check=False)] == [lost, [], []]


def test_a_place_that_takes_again_is_said_to_while_files_still_wait(
    folder: CrawlDir, server: S3Server, proxy: Proxy
) -> None:
    """Not only once everything is there, which may take hours; and not while the first file is refused again."""
    process = UploadProcess(folder, f"s3://{BUCKET}/crawl-{next(_NUMBERS)}", UploadOptions(clock=lambda: 1.8e9))
    proxy.fault = Once(lambda asked: asked.method == "PUT", refusing(403, "AccessDenied"), times=1000)
    process.try_round(ended=True)
    seen: list[str] = []

    class Watching(Fault):
        def before(self, asked: Asked) -> Asked:
            seen.append(read_facts(folder.upload_state)["error"])
            return asked

    proxy.fault = Watching()
    process.try_round(ended=True)

    assert "AccessDenied" in seen[0]
    assert seen[-1] == ""
    assert seen.count("") > 5
    assert seen == sorted(seen, reverse=True)


def test_a_server_that_is_away(short: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens: that is said, and everything stays."""
    monkeypatch.undo()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    short.anew()
    with pytest.raises(TargetError, match=f"{BUCKET}/{short.prefix}"):
        short.uploader.round(ended=True)
    assert local(short.folder) == short.wanted


def test_a_server_that_does_not_answer(
    folder: CrawlDir, server: S3Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up after a while, and asked again."""
    monkeypatch.undo()
    monkeypatch.setattr(upload_target, "_SILENT_SECONDS", 2 * busyness())
    held = Event()

    def hold(asked: Asked) -> Answer:
        held.wait(60)
        raise Cut

    sent = Sent(folder, server)
    proxy.fault = Once(to_the_warc, hold)
    try:
        assert "imeout" in sent.until_done()[0]
    finally:
        held.set()
    sent.is_whole()


def test_parts_that_are_there_are_not_sent_again(short: Sent, proxy: Proxy) -> None:
    """A process that died in the middle of a file goes on with the part that was on its way."""
    proxy.fault = Once(large("partNumber=3"), refusing(500, "InternalError"))
    short.until_done()
    parts = [asked.path for asked in proxy.asked if "partNumber=" in asked.path]
    numbers = [path.partition("partNumber=")[2].partition("&")[0] for path in parts]
    assert numbers == ["1", "2", "3", "3", "4"]


def test_a_file_that_arrived_before_the_death_is_not_sent_again(short: Sent, proxy: Proxy) -> None:
    """The server put the parts together, its answer was lost."""

    class Unheard(Fault):
        heard = True

        def after(self, asked: Asked, answer: Answer) -> Answer:
            if self.heard and asked.method == "POST" and "uploadId" in asked.path:
                self.heard = False
                raise Cut
            return answer

    proxy.fault = Unheard()
    assert len(short.until_done()) == 1
    assert sum("partNumber=" in asked.path for asked in proxy.asked) == 4
    short.is_whole()


def test_two_archives_do_not_mix(original: Path, tmp_path: Path, short: Sent) -> None:
    """A place that another folder has marked is refused with one sentence, and nothing is written there."""
    short.until_done()
    before = short.there()
    other = CrawlDir(shutil.copytree(original, tmp_path / "other"))
    journal = Journal(other)
    journal.open(short.url)
    with pytest.raises(OperatorError, match="holds another archive"):
        Uploader(other, partial(upload_target.open_target, short.url), journal, UploadOptions()).round(ended=True)
    assert short.there() == before


def test_a_new_address_is_refused_while_files_are_at_the_old_one_alone(short: Sent) -> None:
    """They would be forgotten."""
    short.until_done()
    with pytest.raises(OperatorError, match="leave ARCHIVE_URL as it was"):
        Journal(short.folder).open("s3://elsewhere/x")


def test_while_the_crawl_runs_only_what_is_closed_goes(folder: CrawlDir, server: S3Server, proxy: Proxy) -> None:
    """Not the day of the log that is written, no WARC file that has no index yet."""
    (folder.index / f"{LARGE}.cdxj").unlink()
    (folder.warc / "crawl-x.warc.gz.open").write_bytes(b"x")
    sent = Sent(folder, server, keep_local=False)
    sent.uploader.round(ended=False)
    there = sent.there()
    assert f"log/{TODAY}.gz" not in there
    assert not any(LARGE in name or "open" in name for name in there)
    assert len([name for name in there if name.startswith("warc/")]) == 1


def test_a_folder_may_be_the_other_place(folder: CrawlDir, tmp_path: Path) -> None:
    """file://: another disk, a mount; read back to be believed, and no package is needed."""
    wanted, url = local(folder), f"file://{tmp_path}/far%20off"
    journal = Journal(folder)
    journal.open(url)
    opens = partial(upload_target.open_target, url)
    Uploader(folder, opens, journal, UploadOptions(keep_local=False)).round(ended=True)
    there = {
        str(path.relative_to(tmp_path / "far off")): path.read_bytes()
        for path in (tmp_path / "far off").rglob("*")
        if path.is_file()
    }
    assert archived(there) == wanted
    assert not list(folder.warc.glob("*"))
