"""What a place is asked and believed: long lists page by page, digests in whatever form, errors without secrets."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import TargetError
from crawlerproject.rules.archive import upload_rules
from crawlerproject.stores.uploads.upload_target import (
    FolderTarget,
    ObjectTarget,
    S3Target,
    Transfer,
    measured,
    target_errors,
)

QUIET = Transfer("", lambda token: None, lambda count: None)


class Server:
    """S3 as far as uploads in parts ask it: each page of a list has one entry."""

    def __init__(self, uploads: dict[str, str], parts: list[str]) -> None:
        self.uploads = uploads  # id -> key
        self.parts = parts  # tags of those that are there
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call_s3(self, operation: str, **given: Any) -> dict[str, Any]:
        """One request."""
        self.asked.append((operation, given))
        if operation == "list_multipart_uploads":
            left = sorted(each for each in self.uploads if each > given.get("UploadIdMarker", ""))
            page = [{"UploadId": each, "Key": self.uploads[each]} for each in left[:1]]
            more = len(left) > 1
            markers = {"NextKeyMarker": page[0]["Key"], "NextUploadIdMarker": page[0]["UploadId"]} if page else {}
            return {"Uploads": page, "IsTruncated": more, **markers}
        if operation == "list_parts":
            if given["UploadId"] not in self.uploads:
                raise FileNotFoundError(given["UploadId"])
            after = int(given.get("PartNumberMarker", 0))
            found = [{"PartNumber": after + 1, "ETag": tag} for tag in self.parts[after : after + 1]]
            return {"Parts": found, "NextPartNumberMarker": after + 1, "IsTruncated": after + 1 < len(self.parts)}
        return {"UploadId": "new", "ETag": '"sent"'}

    def done(self, operation: str) -> list[dict[str, Any]]:
        """What was asked of this kind."""
        return [given for kind, given in self.asked if kind == operation]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of four parts."""
    monkeypatch.setattr(upload_rules, "FIRST_PART_BYTES", 10)
    path = tmp_path / "large"
    path.write_bytes(bytes(range(40)))
    return path


def test_every_stray_upload_of_a_file_is_given_up(large: Path) -> None:
    """However many pages the list has; those of other files that begin alike stay."""
    server = Server({"u1": "at/large", "u2": "at/large.2", "u3": "at/large", "u4": "at/large"}, [])
    S3Target(server, "s3://bucket/at").send("large", large, measured(large), QUIET)

    assert [given["UploadId"] for given in server.done("abort_multipart_upload")] == ["u1", "u3", "u4"]
    assert len(server.done("upload_part")) == 4


def test_parts_that_are_there_are_not_sent_again(large: Path) -> None:
    """On whatever page of the list they stand; a part that is another one is."""
    tags = [f'"{tag_of(large, number)}"' for number in range(3)]
    server = Server({"known": "at/large"}, [tags[0], '"another"', tags[2]])
    begun: list[str] = []
    transfer = Transfer("known", begun.append, lambda count: None)
    S3Target(server, "s3://bucket/at").send("large", large, measured(large), transfer)

    assert [given["PartNumber"] for given in server.done("upload_part")] == [2, 4]
    assert begun == []
    parts = server.done("complete_multipart_upload")[0]["MultipartUpload"]["Parts"]
    assert [part["ETag"] for part in parts] == [tags[0], '"sent"', tags[2], '"sent"']


def tag_of(path: Path, number: int) -> str:
    """MD5 of a part."""
    return md5(path.read_bytes()[10 * number :][:10], usedforsecurity=False).hexdigest()


def test_a_forgotten_upload_begins_again(large: Path) -> None:
    """Its new name is to be remembered."""
    server, begun = Server({}, []), list[str]()
    S3Target(server, "s3://bucket/at").send(
        "large", large, measured(large), QUIET._replace(token="old", remember=begun.append)
    )

    assert begun == ["new"]


@pytest.mark.parametrize(
    ("facts", "digests"),
    [
        ({"md5Hash": "AAEC"}, {"000102"}),  # Google
        ({"content_settings": {"content_md5": bytearray(b"\0\1\2")}}, {"000102"}),  # Azure
        ({"content_settings": {"content_md5": "AAEC"}}, {"000102"}),
        ({"md5Hash": "A"}, set()),
        ({"content_settings": None}, set()),
    ],
)
def test_digests_as_clouds_give_them(facts: dict[str, Any], digests: set[str]) -> None:
    """In hex; what is none is passed over."""

    class Files:
        def invalidate_cache(self) -> None:
            """Nothing is kept."""

        def info(self, where: str) -> dict[str, Any]:
            """Of any file."""
            return {"size": 3, **facts}

    seen = ObjectTarget(Files(), "gs://bucket").look("name")
    assert seen is not None
    assert seen.digests == digests


def test_an_error_is_one_line_with_its_code() -> None:
    """S3's code stands in the error behind Python's; what is not to be repeated is left out."""
    behind = type("OfS3", (Exception,), {"response": {"Error": {"Code": "SlowDown"}}})("behind")
    with pytest.raises(TargetError, match=r"^s3://b/x: SlowDown: two\\nlines$"), target_errors("s3://b/x"):
        raise OSError("two\nlines") from behind
    with pytest.raises(KeyError), target_errors("s3://b/x", passed=(KeyError,)):
        raise KeyError("passed")


def test_a_folder_has_what_was_sent(tmp_path: Path, large: Path) -> None:
    """Read back by its bytes; a file that is not there is none."""
    target = FolderTarget(tmp_path / "far")
    target.send("warc/large", large, measured(large), QUIET)

    assert target.read_sha256("warc/large") == (40, measured(large).sha256)
    assert target.look("warc/other") is None
    with pytest.raises(TargetError):
        list(target.read("warc/other"))
