"""What an operator can do about a seed that was refused or failed: by reason, the setting or question that helps."""

from __future__ import annotations

from crawlerproject.reasons import Reason

# One sentence or two each. A reason that is missing here has no setting.
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
