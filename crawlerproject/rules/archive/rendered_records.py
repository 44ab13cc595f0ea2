"""The bytes of one render: the DOM as a conversion record, perhaps a screenshot, and how they came to be (metadata).

A conversion refers to the record it was made from (WARC 1.1, 6.8); the metadata record comes last, so that a group of
records that a crash cut off is recognised as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import make_member, one_line, warc_date


class Render(NamedTuple):
    """What is archived of one render; times in epoch seconds."""

    url: str
    plain_id: str  # record id of the plain answer
    html: bytes  # the DOM, UTF-8
    started_at: float
    ended_at: float
    facts: Sequence[tuple[str, str]]  # lines of the metadata record
    screenshot: bytes = b""  # PNG


class RenderMembers(NamedTuple):
    """The gzip members of one render, to be written at once."""

    members: bytes
    record_id: str  # of the conversion, which comes first
    length: int  # of the conversion


def is_render(member: Member) -> bool:
    """Whether a record is a page as a browser left it: the one its ``WARC-Refers-To`` names, for every reader."""
    return member.kind == "conversion" and member.field("content-type").startswith("text/html")


def render_members(render: Render, *, warcinfo_id: str, new_id: Callable[[], str]) -> RenderMembers:
    """Build conversion, screenshot (a resource record) and metadata as one buffer."""
    conversion_id, screenshot_id = new_id(), new_id()
    url = one_line(render.url)
    common = f"WARC-Date: {warc_date(render.ended_at)}\r\nWARC-Target-URI: {url}\r\nWARC-Warcinfo-ID: {warcinfo_id}\r\n"
    conversion = make_member(
        f"WARC/1.1\r\nWARC-Type: conversion\r\nWARC-Record-ID: {conversion_id}\r\n{common}"
        f"WARC-Refers-To: {render.plain_id}\r\nContent-Type: text/html; charset=utf-8\r\n",
        render.html,
    )
    screenshot = b""
    if render.screenshot:
        screenshot = make_member(
            f"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: {screenshot_id}\r\n{common}"
            f"WARC-Concurrent-To: {conversion_id}\r\nContent-Type: image/png\r\n",
            render.screenshot,
        )
    lines = [
        f"renderTimeMs: {max(0, round((render.ended_at - render.started_at) * 1000))}",
        *(f"{name}: {one_line(value)}" for name, value in render.facts),
        "",
    ]
    metadata = make_member(
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {new_id()}\r\n{common}"
        f"WARC-Refers-To: {conversion_id}\r\nContent-Type: application/warc-fields\r\n",
        "\r\n".join(lines).encode(),
    )
    return RenderMembers(conversion + screenshot + metadata, conversion_id, len(conversion))
