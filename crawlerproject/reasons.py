"""The one vocabulary of what can happen to a URL: the word in the log, the stats and the docs; and what helps."""

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
    # Released logs call an external request a stranger's.
    EXTERNAL_BUDGET = "stranger-budget"
    EXTERNAL_DOOR = "stranger-door"
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
    # The site reserves it from our purpose, as far as that is obeyed; of the last two it has answered.
    RESERVED_ROBOTS = "reserved-robots"
    RESERVED_LICENSE = "reserved-license"
    RESERVED_TDMREP = "reserved-tdmrep"
    RESERVED_HEADER = "reserved-header"
    RESERVED_PAGE = "reserved-page"
    PAYMENT_REQUIRED = "payment-required"

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

RESERVED = frozenset(
    {
        Reason.RESERVED_ROBOTS,
        Reason.RESERVED_LICENSE,
        Reason.RESERVED_TDMREP,
        Reason.RESERVED_HEADER,
        Reason.RESERVED_PAGE,
    }
)
"""The site reserves the page from the crawl's purpose: nothing of it is kept."""

REMEDIES: dict[Reason, str] = {
    # Refused.
    Reason.NEVERCRAWL: "The list in NEVERCRAWL_FILE excludes its domain.",
    Reason.PRIVATE_ADDRESS: "FETCH_ALLOW_NETWORKS lets private addresses in, for example 10.0.0.0/8.",
    Reason.EXTENSION: "SKIP_EXTENSIONS lists its extension.",
    Reason.ROBOTS: "Its robots.txt forbids it; no setting overrides that.",
    Reason.ROBOTS_UNREACHABLE: "Its robots.txt cannot be had, and without it nothing is asked.",
    Reason.SCOPE: "It is outside of -a scope=.",
    Reason.URL_LENGTH: "SCOPE_MAX_URL_LENGTH is the most.",
    Reason.TRAP: "TRAP_ALLOW_FILE lets a path in that looks like a trap.",
    Reason.BAD_PORT: "No web server is looked for at that port, as in browsers.",
    Reason.POISON: "The process died over it twice; scrapy recover --poison queues it again.",
    Reason.MIDDLEWARE: "A middleware of the project refused it.",
    **dict.fromkeys(RESERVED, "The site reserves it from PURPOSE; scrapy why URL has its words."),
    Reason.PAYMENT_REQUIRED: "The site wants money for it, which a crawl never pays.",
    # Failed.
    Reason.DNS_NOT_FOUND: "Is the name spelt right? FETCH_HOSTS_FILE holds names of your own.",
    Reason.DNS_FAILED: "Is this machine online? FETCH_DNS_SERVERS names other servers.",
    Reason.CONNECT_TIMEOUT: "Is this machine online? FETCH_CONNECT_TIMEOUT_SECONDS is the longest wait.",
    Reason.CONNECT_REFUSED: "Nothing listens there: are scheme and port right?",
    Reason.CONNECT_FAILED: "Is this machine online?",
    Reason.TLS_CERTIFICATE: "FETCH_CA_FILE adds authorities; TLS_ALLOW_HOSTS accepts the certificate of one host.",
    Reason.TLS_FAILED: "Does it speak https? Try the seed with http.",
    Reason.PROXY_FAILED: "http_proxy and https_proxy in the environment name the proxy.",
    Reason.OUR_LIMIT: "Raise what this machine gives the crawl: ulimit -n, LimitNOFILE, TasksMax, MemoryMax.",
    Reason.FIRST_BYTE_TIMEOUT: "FETCH_FIRST_BYTE_TIMEOUT_SECONDS is the longest wait.",
    Reason.RATE_LIMITED: "The host asks to wait, which is honoured.",
    Reason.CHALLENGE: "A wall against crawlers answered: ask the site's owner.",
}
"""What an operator can do about a seed that was refused or failed: the setting or question that helps, if any."""
