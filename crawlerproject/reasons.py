"""The one vocabulary of what can happen to a URL: the word in the log, the stats and the docs."""

from enum import StrEnum


class Reason(StrEnum):
    """Why a URL is in the state it is in; every refusal, outcome and failure has one word here."""

    # Outcomes: a server answered.
    FETCHED = "fetched"
    NOT_MODIFIED = "not-modified"
    REDIRECT = "redirect"
    HTTP_ERROR = "http-error"
    RATE_LIMITED = "rate-limited"
    CHALLENGE = "challenge"
    RENDERED = "rendered"
    SUBSCRIBED = "subscribed"

    # Refusals: never asked for.
    INVALID_URL = "invalid-url"
    SCHEME = "unsupported-scheme"
    NEVERCRAWL = "nevercrawl"
    EXTENSION = "extension"
    ROBOTS = "robots"
    ROBOTS_UNREACHABLE = "robots-unreachable"
    SCOPE = "out-of-scope"
    DEPTH = "too-deep"
    URL_LENGTH = "url-too-long"
    BUDGET = "host-budget"
    TRAP = "trap"
    STRANGER = "stranger-budget"
    STRANGER_DOOR = "stranger-door"
    SITEMAP_BUDGET = "sitemap-budget"
    REQUISITE_BUDGET = "requisite-budget"
    ROBOTS_REDIRECT = "robots-redirect"
    PRIVATE_ADDRESS = "private-address"
    NOFOLLOW = "nofollow"
    PACE_GUARD = "pace-guard"
    RENDER_PACE = "render-pace"
    HOST_PARKED = "host-parked"
    FOREIGN_ENTRY = "foreign-entry"
    BAD_PORT = "bad-port"
    TOO_MANY_PORTS = "too-many-ports"
    TOO_MANY_HOSTS = "too-many-hosts"
    TOO_MANY_NAMES = "too-many-names"
    POISON = "poison"
    HUB_UNPROVEN = "hub-unproven"
    MIDDLEWARE = "middleware"

    # Not yet: it stays queued.
    PAUSED = "paused"
    HOST_LIMIT = "host-limit"
    CRAWL_LIMIT = "crawl-limit"

    # Failures: asked for, no usable answer.
    DNS_NOT_FOUND = "dns-not-found"
    DNS_FAILED = "dns-failed"
    CONNECT_TIMEOUT = "connect-timeout"
    CONNECT_REFUSED = "connect-refused"
    CONNECT_FAILED = "connect-failed"
    TLS_CERTIFICATE = "tls-certificate"
    TLS_FAILED = "tls-failed"
    PROXY_FAILED = "proxy-failed"
    FIRST_BYTE_TIMEOUT = "first-byte-timeout"
    DISCONNECTED = "disconnected"
    BAD_RESPONSE = "bad-response"
    HEADER_TOO_LARGE = "header-too-large"
    RENDER_TIMEOUT = "render-timeout"
    RENDER_FAILED = "render-failed"
    OUR_LIMIT = "our-limit"
    INTERNAL_ERROR = "internal-error"
    LOST = "lost"


ANSWERED = frozenset(
    {
        Reason.FETCHED,
        Reason.NOT_MODIFIED,
        Reason.REDIRECT,
        Reason.HTTP_ERROR,
        Reason.RATE_LIMITED,
        Reason.CHALLENGE,
        Reason.RENDERED,
        Reason.SUBSCRIBED,
    }
)
"""The outcomes: a server answered, or a browser made a page of what it had answered."""
