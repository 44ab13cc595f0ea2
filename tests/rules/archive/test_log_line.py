"""The log line's fields and their order are a contract."""

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.log_line import line

ORDER = [
    "time",
    "end",
    "url",
    "method",
    "status",
    "reason",
    "host",
    "ip",
    "via",
    "depth",
    "hop",
    "mime",
    "bytes",
    "location",
    "ttfb_seconds",
    "seconds",
    "delay_seconds",
    "digest",
    "warc",
    "offset",
    "length",
    "error",
    "tries",
    "truncated",
    "rendered",
    "duplicate",
    "duplicate_of",
]


def test_fields_and_order() -> None:
    """Every field is always there, in the fixed order."""
    assert list(line(0.0, 1.0, "http://a.test/", Reason.FETCHED)) == ORDER


def test_values() -> None:
    """Times are UTC with microseconds, unknown is null, an error has no status."""
    fields = line(1_790_000_000.25, 1_790_000_001.5, "http://a.test/", Reason.DNS_FAILED, error="no answer")
    assert fields["time"] == "2026-09-21T14:13:20.250000Z"
    assert fields["end"] == "2026-09-21T14:13:21.500000Z"
    assert fields["seconds"] == 1.25
    assert fields["status"] is None
    assert fields["reason"] == "dns-failed"
    assert fields["error"] == "no answer"
    assert fields["offset"] is None
    assert fields["rendered"] is False
