"""The guarded download handler for other spiders: fails, and treats truncated responses, as Scrapy's own does.

Retries, errbacks and ``RETRY_EXCEPTIONS`` depend on Scrapy's exception classes, and a spider that was not written for
this crawler takes every response to be complete.
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

# docs.scrapy.org, "Download handlers": the exceptions that a handler raises. Reasons that are missing here (a refused
# address or port, a bad certificate) are failures that a retry would not mend.
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
# Truncated bodies, by the flag that fetch/handler.py sets.
_CUT: dict[str, tuple[Reason, type[Exception], str]] = {
    "truncated-length": (Reason.BAD_RESPONSE, DownloadCancelledError, "the body exceeds DOWNLOAD_MAXSIZE"),
    "truncated-time": (Reason.FIRST_BYTE_TIMEOUT, DownloadTimeoutError, "the body took longer than DOWNLOAD_TIMEOUT"),
    "truncated-disconnect": (Reason.DISCONNECTED, ResponseDataLossError, "the body ended early"),
}
_LOSS = "truncated-disconnect"
# Classes that derive from ``FetchError`` and one of Scrapy's exceptions; logs and stats show the latter's name.
_BOTH: dict[type[Exception], Any] = {
    kind: type(kind.__name__, (FetchError, kind), {"__module__": kind.__module__})
    for kind in {*_EXCEPTIONS.values(), *(kind for _, kind, _ in _CUT.values())}
}


class ScrapyDownloadHandler(RenderingDownloadHandler):
    """Raises exceptions that are both ``FetchError`` and Scrapy's class; a truncated response is a failure.

    ``DOWNLOAD_FAIL_ON_DATALOSS`` and ``meta["download_fail_on_dataloss"]`` apply: where they are off, a response that
    broke off has the flag ``dataloss``.
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
            error = refusal.__cause__  # of the robots.txt: the page would have failed likewise
            if isinstance(error, FetchError) and (known := _as_scrapy(error)) is not error:
                raise known from refusal
            raise
        finally:  # else meta=response.meta would carry the exchange's bytes to the next request, and to disk
            request.meta.pop(META_KEY, None)
        self._refuse_part(request, response)
        return response

    def _refuse_part(self, request: Request, response: Response) -> None:
        """Raise Scrapy's exception for a truncated response, unless the spider accepts a part."""
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
    """The same error, also as an instance of Scrapy's class where there is one."""
    kind = _EXCEPTIONS.get(error.reason)
    if kind is None or type(error) is not FetchError:
        return error
    known: FetchError = _BOTH[kind](error.reason, error.detail, error.wire)
    return known
