"""S3 and what speaks like it: large files go up in parts, and a death in the middle costs one part.

Each part carries its MD5, which the server checks. A file in parts appears when the parts are put together; until then
they lie there under an upload's name, which the journal keeps.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

from crawlerproject.rules.archive.uploads import Measured, Seen, part_bytes
from crawlerproject.stores.uploads.far_side import FarSideError, ObjectSide, Sending, far_errors


class S3Side(ObjectSide):
    """A bucket, or a prefix in one."""

    def __init__(self, files: Any, url: str) -> None:
        super().__init__(files, url)
        self._bucket, _, self._prefix = url.removeprefix("s3://").partition("/")

    def look(self, name: str) -> Seen | None:
        with far_errors(self.where(name)):
            try:
                facts = self._call("head_object", name)
            except FileNotFoundError:
                return None
            return Seen(int(facts["ContentLength"]), frozenset({str(facts.get("ETag", "")).strip('"')}))

    def send(self, name: str, path: Path, what: Measured, sending: Sending) -> None:
        with far_errors(self.where(name)):
            if what.size <= part_bytes(what.size):
                data = path.read_bytes()
                self._call("put_object", name, Body=data, ContentMD5=_md5(data))
                sending.sent(len(data))
            else:
                self._in_parts(name, path, what, sending)

    def _in_parts(self, name: str, path: Path, what: Measured, sending: Sending) -> None:
        upload, there = self._begun(name, sending.token)
        if upload != sending.token:
            sending.remember(upload)
        step, tags = part_bytes(what.size), []
        with path.open("rb") as file:
            for number, data in enumerate(iter(lambda: file.read(step), b""), start=1):
                tag = f'"{md5(data, usedforsecurity=False).hexdigest()}"'
                if there.get(number) != tag:
                    given = {"UploadId": upload, "PartNumber": number, "Body": data, "ContentMD5": _md5(data)}
                    tag = self._call("upload_part", name, **given)["ETag"]
                    sending.sent(len(data))
                tags.append({"PartNumber": number, "ETag": tag})
        self._call("complete_multipart_upload", name, UploadId=upload, MultipartUpload={"Parts": tags})

    def _begun(self, name: str, token: str) -> tuple[str, dict[int, str]]:
        """An upload of this file, and the parts that it has; what was begun and is not known any more is given up."""
        if token:
            try:
                return token, dict(self._parts(name, token))
            except FileNotFoundError:  # it was put together, or the server has forgotten it
                pass
        for stray in self._uploads(name):
            self._call("abort_multipart_upload", name, UploadId=stray)
        return str(self._call("create_multipart_upload", name)["UploadId"]), {}

    def _parts(self, name: str, upload: str) -> Iterator[tuple[int, str]]:
        after = 0
        while True:
            page = self._call("list_parts", name, UploadId=upload, PartNumberMarker=after)
            yield from ((part["PartNumber"], part["ETag"]) for part in page.get("Parts", ()))
            following = int(page.get("NextPartNumberMarker") or 0)
            if not page.get("IsTruncated") or following <= after:
                return
            after = following

    def _uploads(self, name: str) -> list[str]:
        key = self._key(name)
        page = self.files.call_s3("list_multipart_uploads", Bucket=self._bucket, Prefix=key)
        return [upload["UploadId"] for upload in page.get("Uploads", ()) if upload["Key"] == key]

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _call(self, operation: str, name: str, **given: Any) -> dict[str, Any]:
        answer = self.files.call_s3(operation, Bucket=self._bucket, Key=self._key(name), **given)
        if not isinstance(answer, dict):
            raise FarSideError(f"{self.where(name)}: no answer to {operation}")
        return answer


def _md5(data: bytes) -> str:
    return base64.b64encode(md5(data, usedforsecurity=False).digest()).decode()
