"""Runs the process that reads documents: one that kills it is counted and lost, and the next gets a new process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from crawlerproject.documents.document_process import LENGTH_BYTES, SECONDS
from crawlerproject.rules.page.extract import LinkText, PageText
from crawlerproject.rules.page.text_fingerprint import count_words
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import Base, host_key

# So many documents of a site may crash the reader or take too long; then its others are left out, unread: a site
# cannot hold up the rest for longer than this many times the seconds above.
_PATIENCE = 3
# A million characters and ten thousand links in JSON's longest form are 150 MB; an answer is never near that.
_MAX_ANSWER_BYTES = 64 << 20

_LEFT_OUT = ("documents were left out", "document was left out")
TOO_SLOW, CRASHED = "too slow", "crashed the reader"
UNREAD = f"unread after {_PATIENCE} of their site's were too slow or crashed the reader"


class DocumentTexts:
    """Reads one at a time; ``failed`` counts those that could not be read, ``first`` names one of each kind."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._document = -1  # a descriptor, as long as there is a process
        self.failed: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        self._harm: Counter[str] = Counter()  # documents that cost us the process, by site

    def read(self, kind: str, body: bytes, url: str) -> PageText | None:
        """What a document of this ``kind`` says; None when it could not be read, which is counted."""
        site = registered_domain(host_key(url))
        answer = self._answer(kind, body) if self._harm[site] < _PATIENCE else UNREAD
        if isinstance(answer, str) or "failed" in answer:
            why = answer if isinstance(answer, str) else str(answer["failed"])
            self._harm[site] += why in (TOO_SLOW, CRASHED)
            self.failed[why] += 1
            self.first.setdefault(why, url)
            return None
        base = Base(url, "utf-8")
        links: list[LinkText] = []
        for target, words in answer["links"]:
            if (address := base.join(target)) is not None:
                links.append(LinkText(address.url, words, "", len(links)))
        text = answer["text"]
        return PageText(answer["title"], text, links, "", count_words(text), language=answer["language"])

    def notes(self) -> list[str]:
        """A sentence a kind of failure."""
        return [
            f"{count:,} {_LEFT_OUT[count == 1]} ({why}), the first is {self.first[why]}"
            for why, count in sorted(self.failed.items())
        ]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process.wait()
            os.close(self._document)
            self._process = None

    def _answer(self, kind: str, body: bytes) -> dict[str, Any] | str:
        process = self._process or self._started()
        assert process.stdin is not None
        os.ftruncate(self._document, 0)
        os.pwrite(self._document, body, 0)
        try:
            process.stdin.write(b"%b %d\n" % (kind.encode(), len(body)))
            return self._received(process, time.monotonic() + self._seconds)
        except (EOFError, BrokenPipeError, ValueError):
            self.close()
            return CRASHED
        except TimeoutError:
            self.close()
            return TOO_SLOW

    def _started(self) -> subprocess.Popen[bytes]:
        document = os.memfd_create("document")
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "crawlerproject.documents.document_process", str(document)],
                # Nothing of ours: proxies and Redis have their passwords in the environment.
                env={"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(document,),
                bufsize=0,  # what a dead process did not take is not written again as its pipe is closed
            )
        except BaseException:
            os.close(document)
            raise
        self._document = document
        return self._process

    @staticmethod
    def _received(process: subprocess.Popen[bytes], until: float) -> dict[str, Any]:
        """The answer; EOFError when the process died, TimeoutError when it took too long."""
        assert process.stdout is not None
        descriptor, received, due = process.stdout.fileno(), bytearray(), LENGTH_BYTES
        while len(received) < due:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                raise EOFError
            received += piece
            if due == LENGTH_BYTES and len(received) >= LENGTH_BYTES:
                due += int.from_bytes(received[:LENGTH_BYTES], "big")
                if due > _MAX_ANSWER_BYTES:
                    raise EOFError
        answer: dict[str, Any] = json.loads(received[LENGTH_BYTES:])
        return answer
