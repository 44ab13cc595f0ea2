"""WET and WAT files in Common Crawl's manner: plain text, and facts as JSON, one record a capture.

The ids of records are derived from those they are made of: the same WARC gives the same file.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import make_member
from crawlerproject.rules.page.extract import PageText

_CAPITALS = ("warc", "uri", "id", "ip")


class _Records:
    """A WARC of derived records."""

    kind = ""

    def __init__(self, path: Path, warc_name: str) -> None:
        self._file = path.open("wb")
        self._path = path
        self._warc_name = warc_name
        self._begun = False
        self._left_out: list[range] = []

    def leave_out(self, span: range) -> None:
        """Have the file without these bytes in the end, which ``add`` wrote."""
        self._left_out.append(span)

    def _write(self, source: Member, fields: str, block: bytes) -> range:
        if not self._begun:
            self._begun = True
            date, name = source.field("warc-date"), self._warc_name.replace(".warc.gz", f".warc.{self.kind}.gz")
            info = b"software: crawlerproject\r\nisPartOf: " + self._warc_name.encode() + b"\r\n"
            head = f"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Date: {date}\r\nWARC-Filename: {name}\r\n"
            head += f"WARC-Record-ID: {self._id('warcinfo')}\r\nContent-Type: application/warc-fields\r\n"
            self._file.write(make_member(head, info))
        start = self._file.tell()
        return range(start, start + self._file.write(make_member(fields, block)))

    def _id(self, source_id: str) -> str:
        return f"<{uuid5(NAMESPACE_URL, f'{self.kind} {self._warc_name} {source_id}').urn}>"

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()
        if any(self._left_out):
            self._without()

    def _without(self) -> None:
        shorter = self._path.with_name(f"{self._path.name}.shorter")
        with (
            self._path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
            shorter.open("wb") as target,
        ):
            position = 0
            for span in sorted(self._left_out, key=lambda span: span.start):
                target.write(whole[position : span.start])
                position = span.stop
            target.write(whole[position:])
        shorter.replace(self._path)


class WetWriter(_Records):
    """``conversion`` records of type text/plain."""

    kind = "wet"

    def add(self, response: Member, title: str, text: str, language: str | None, consent: str = "") -> range:
        """The text of one response or render; its title is the first line, as Common Crawl has it. Where it stands.

        ``consent``: the verdict on its use; a WAT file has it among the lines of the metadata record.
        """
        source_id = response.field("warc-record-id")
        fields = (
            f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {response.url}\r\n"
            f"WARC-Date: {response.field('warc-date')}\r\nWARC-Record-ID: {self._id(source_id)}\r\n"
            f"WARC-Refers-To: {source_id}\r\n"
        )
        if language:
            fields += f"WARC-Identified-Content-Language: {language}\r\n"
        if consent:
            fields += f"Consent: {consent}\r\n"
        block = f"{title}\n{text}" if title else text
        return self._write(response, fields + "Content-Type: text/plain\r\n", block.encode("utf-8", "replace"))


class WatWriter(_Records):
    """``metadata`` records whose JSON has the envelope of Common Crawl's extractor."""

    kind = "wat"

    def add(self, source: Member, page: PageText | None) -> None:
        """The facts of one record."""
        source_id = source.field("warc-record-id")
        target = source.url or self._warc_name
        fields = (
            f"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: {target}\r\n"
            f"WARC-Date: {source.field('warc-date')}\r\nWARC-Record-ID: {self._id(source_id)}\r\n"
            f"WARC-Refers-To: {source_id}\r\n"
            "Content-Type: application/json\r\n"
        )
        self._write(source, fields, orjson.dumps(self._facts(source, page)))

    def _facts(self, source: Member, page: PageText | None) -> dict[str, Any]:
        envelope: dict[str, Any] = {
            "Format": "WARC",
            "Actual-Content-Length": source.field("content-length") if source.is_large else str(len(source.block)),
            # Names as they are usually spelled; readers of WARC lower-case them.
            "WARC-Header-Metadata": {
                "-".join(part.upper() if part in _CAPITALS else part.title() for part in name.split("-")): value
                for name, value in source.fields
            },
            "Payload-Metadata": self._payload(source, page),
        }
        compressed = self._warc_name.endswith(".gz")
        container = {"Filename": self._warc_name, "Compressed": compressed, "Offset": str(source.offset)}
        container_length = {"Gzip-Metadata": {"Deflate-Length": str(source.length)}}
        return {"Container": container | container_length, "Envelope": envelope}

    def _payload(self, source: Member, page: PageText | None) -> dict[str, Any]:
        kind = source.field("content-type")
        facts: dict[str, Any] = {"Actual-Content-Type": kind}
        if source.kind == "conversion":  # of a browser's: where the facts of other pages are
            facts["HTTP-Response-Metadata"] = _of_html(page)
            return facts
        if not kind.startswith("application/http"):
            lines = (line.partition(": ") for line in source.block.decode("utf-8", "replace").splitlines())
            facts["WARC-Metadata-Metadata"] = {
                "Metadata-Records": [{"Name": name, "Value": value} for name, _, value in lines if name]
            }
            return facts
        start, _, rest = source.head.decode("latin-1").rstrip("\r\n").partition("\r\n")
        headers = dict(line.split(": ", 1) for line in rest.split("\r\n") if ": " in line)
        if source.kind == "request":
            method, _, path = start.partition(" ")
            message = {"Method": method, "Path": path.rpartition(" ")[0], "Version": start.rpartition(" ")[2]}
            facts["HTTP-Request-Metadata"] = {"Request-Message": message, "Headers": headers}
            return facts
        words = [*start.split(" ", 2), "", ""]
        answer: dict[str, Any] = {
            "Response-Message": {"Version": words[0], "Status": words[1], "Reason": words[2]},
            "Headers": headers,
        }
        facts["HTTP-Response-Metadata"] = answer | _of_html(page)
        return facts


def _of_html(page: PageText | None) -> dict[str, Any]:
    if page is None:
        return {}
    links = [{"path": "A@/href", "url": link.target, "text": link.text} for link in page.links]
    return {"HTML-Metadata": {"Head": {"Title": page.title}, "Links": links}}
