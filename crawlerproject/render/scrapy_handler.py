"""The guarded download handler for spiders that are not ours: it fails and cuts as Scrapy documents its own to.

Retries, errbacks and ``RETRY_EXCEPTIONS`` go by Scrapy's exception classes, and a spider that knows nothing of this
crawler takes every answer for a whole one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)

from crawlerproject.errors import FetchError
from crawlerproject.fetch.exchange import META_KEY
from crawlerproject.guard.refusal import Refused
from crawlerproject.reasons import Reason
from crawlerproject.render.handler import RenderingDownloadHandler

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

# docs.scrapy.org, "Download handlers": which exception a handler raises for what. What is missing here (a refused
# address or port, a certificate that does not hold) is no failure that a second try would mend.
_EXCEPTIONS: dict[Reason, type[Exception]] = {
    Reason.DNS_NOT_FOUND: CannotResolveHostError,
    Reason.DNS_FAILED: CannotResolveHostError,
    Reason.CONNECT_REFUSED: DownloadConnectionRefusedError,
    Reason.CONNECT_FAILED: DownloadFailedError,
    Reason.CONNECT_TIMEOUT: DownloadTimeoutError,
    Reason.FIRST_BYTE_TIMEOUT: DownloadTimeoutError,
    Reason.TLS_FAILED: DownloadFailedError,
    Reason.PROXY_FAILED: DownloadFailedError,
    Reason.DISCONNECTED: DownloadFailedError,
    Reason.BAD_RESPONSE: DownloadFailedError,
    Reason.HEADER_TOO_LARGE: DownloadFailedError,
}
# A body that was cut, by the flag of fetch/handler.py.
_CUT: dict[str, tuple[Reason, type[Exception], str]] = {
    "truncated-length": (Reason.BAD_RESPONSE, DownloadCancelledError, "the body exceeds DOWNLOAD_MAXSIZE"),
    "truncated-time": (Reason.FIRST_BYTE_TIMEOUT, DownloadTimeoutError, "the body took longer than DOWNLOAD_TIMEOUT"),
    "truncated-disconnect": (Reason.DISCONNECTED, ResponseDataLossError, "the body ended early"),
}
_LOSS = "truncated-disconnect"
# ``FetchError`` and one of Scrapy's exceptions in one class, which has the latter's name in logs and stats.
_BOTH: dict[type[Exception], Any] = {
    kind: type(kind.__name__, (FetchError, kind), {"__module__": kind.__module__})
    for kind in {*_EXCEPTIONS.values(), *(kind for _, kind, _ in _CUT.values())}
}


class ScrapyDownloadHandler(RenderingDownloadHandler):
    """Raises exceptions that are ``FetchError`` and Scrapy's class at once; an answer that was cut is a failure.

    ``DOWNLOAD_FAIL_ON_DATALOSS`` and ``meta["download_fail_on_dataloss"]`` hold: where they are off, the part that came
    has the flag ``dataloss``.
    """

    async def download_request(self, request: Request) -> Response:
        """Scrapy: fetch one request."""
        try:
            response = await super().download_request(request)
        except FetchError as failure:
            if (known := _as_scrapy(failure)) is failure:
                raise
            raise known from failure
        except Refused as refusal:
            error = refusal.__cause__  # of its robots.txt: the page would have failed in the same way
            if isinstance(error, FetchError) and (known := _as_scrapy(error)) is not error:
                raise known from refusal
            raise
        finally:  # with meta=response.meta the exchange's bytes would go to the next page, and on disk
            request.meta.pop(META_KEY, None)
        self._refuse_part(request, response)
        return response

    def _refuse_part(self, request: Request, response: Response) -> None:
        """Raise Scrapy's exception for an answer that was cut, unless a part of it is wanted."""
        for flag in [flag for flag in response.flags if flag in _CUT]:
            if flag == _LOSS and not self._fails_on_loss(request):
                response.flags.append("dataloss")
            else:
                reason, kind, why = _CUT[flag]
                raise _BOTH[kind](reason, why)

    def _fails_on_loss(self, request: Request) -> bool:
        default = self.crawler.settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        return cast("bool", request.meta.get("download_fail_on_dataloss", default))


def _as_scrapy(error: FetchError) -> FetchError:
    """The same error, as an instance of Scrapy's class besides where there is one."""
    kind = _EXCEPTIONS.get(error.reason)
    if kind is None or type(error) is not FetchError:
        return error
    known: FetchError = _BOTH[kind](error.reason, error.detail, error.wire)
    return known
