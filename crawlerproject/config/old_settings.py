"""Settings of which a start warns: those of earlier versions, and those of Scrapy's that a crawl has no use for.

A renamed setting counts under its new name, and one that is a constant now applies if it is given: an old settings
file, ``crawl.toml``, environment or command line goes on working. An ordinary setting of Scrapy's without effect was
somebody's wish, so the line names what does its work.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from crawlerproject import settings as ours
from crawlerproject.config.settings_table import ALL, FORMER, RENAMED, SETTINGS, WITHOUT_EFFECT

if TYPE_CHECKING:
    from scrapy import Spider

logger = logging.getLogger(__name__)

_PROJECT = SETTINGS_PRIORITIES["project"]
_SPIDER = SETTINGS_PRIORITIES["spider"]
INSTEAD: dict[str, str] = {
    "AUTOTHROTTLE_ENABLED": "PACE_PRESET does it",
    "COOKIES_ENABLED": "no cookies are kept",
    "DEFAULT_REQUEST_HEADERS": "all requests have the same headers",
    "DEPTH_LIMIT": "use SCOPE_MAX_DEPTH",
    "DOWNLOAD_DELAY": "use PACE_MIN_SECONDS",
    "DOWNLOAD_MAXSIZE": "use FETCH_MAX_BYTES",
    "DOWNLOAD_TIMEOUT": "use FETCH_TIMEOUT_SECONDS",
    "HTTPCACHE_ENABLED": "the archive keeps all pages",
    "JOBDIR": "CRAWL_DIR keeps the state",
    "METAREFRESH_ENABLED": "not followed",
    "REDIRECT_ENABLED": "the frontier follows redirects as links",
    "REFERER_ENABLED": "no Referer is sent",
    "RETRY_ENABLED": "the frontier tries again, see HOST_MAX_FAILURES",
    "URLLENGTH_LIMIT": "use SCOPE_MAX_URL_LENGTH",
    "USER_AGENT": "use CRAWLER_NAME, CRAWLER_INFO_URL and CRAWLER_CONTACT",
}
"""Setting of Scrapy's: what to use, or what happens, in a crawl of ``WebSpider``."""
NOWHERE: dict[str, str] = {
    **dict.fromkeys(("DNSCACHE_ENABLED", "DNSCACHE_SIZE", "DNS_RESOLVER", "DNS_TIMEOUT"), "use FETCH_DNS_SERVERS"),
    "TWISTED_DNS_RESOLVER": "use FETCH_DNS_SERVERS",
    **dict.fromkeys(
        (
            *("DOWNLOADER_CLIENTCONTEXTFACTORY", "DOWNLOADER_CLIENT_TLS_CIPHERS", "DOWNLOADER_CLIENT_TLS_METHOD"),
            *("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING", "DOWNLOAD_TLS_MAX_VERSION", "DOWNLOAD_TLS_MIN_VERSION"),
        ),
        "OpenSSL's defaults hold",
    ),
    "DOWNLOAD_VERIFY_CERTIFICATES": "certificates are verified, TLS_ALLOW_HOSTS names exceptions",
    "ROBOTSTXT_OBEY": "robots.txt is obeyed",
    "ROBOTSTXT_PARSER": "the crawler has its own",
}
"""Settings of Scrapy's that do nothing for any spider: what to use, or what happens."""
_WISHED_OFF = frozenset({"DNSCACHE_ENABLED", "DOWNLOAD_VERIFY_CERTIFICATES", "ROBOTSTXT_OBEY"})
ALLOWED_DOMAINS = "allowed_domains"
"""The spider's attribute; ``scope`` does its work."""
# `scrapy startproject` writes these into every project: they are no wish.
_TEMPLATE = {"DOWNLOAD_DELAY": 1}


def ours_of(settings: BaseSettings) -> dict[str, Any]:
    """All of our settings, with those of earlier versions that were given."""
    return {name: settings[name] for name in ALL if name in SETTINGS or settings.get(name) is not None}


def take_old_names(settings: BaseSettings) -> list[str]:
    """Give renamed settings their new names, at the priority at which they were set; return what to say of each."""
    messages = []
    for old, new in RENAMED.items():
        if (priority := settings.getpriority(old)) is None:
            continue
        messages.append(f"{old} is {new} now")
        if priority > (settings.getpriority(new) or 0):
            settings.set(new, settings[old], priority)
    given = [name for name in FORMER if settings.get(name) not in (None, "")]
    messages += [f"{name} is no longer a setting, but its value {settings[name]} still applies" for name in given]
    return messages + [
        f"{name} has no effect, it is always {value:,}" for name, value in WITHOUT_EFFECT.items() if name in settings
    ]


def warn_old_names(settings: BaseSettings) -> None:
    """Log what ``take_old_names`` says in one line. Before a crawler freezes its settings."""
    if messages := take_old_names(settings):
        logger.warning("Settings of an earlier version: %s.", "; ".join(messages))


def warn_nowhere(settings: BaseSettings) -> None:
    """One line for what was set and does nothing for any spider. Before the add-on sets what a spider needs."""
    found = []
    for name, instead in NOWHERE.items():
        if (settings.getpriority(name) or 0) >= _PROJECT:
            default = getattr(default_settings, name, None)
            wished = not settings.getbool(name) if name in _WISHED_OFF else settings[name] != default
            found += [f"{name} ({instead})"] if wished else []
    if found:
        logger.warning("Set, but without effect here: %s.", "; ".join(found))


def unused(spider: Spider, settings: BaseSettings) -> list[str]:
    """What was set and does nothing, each with the word that helps."""
    found = [f"{name} ({why})" for name, why in INSTEAD.items() if _wished(name, settings)]
    if getattr(spider, ALLOWED_DOMAINS, None):
        found.append(f"{ALLOWED_DOMAINS} (use scope)")
    return found


def warn_unused(spider: Spider, settings: BaseSettings) -> None:
    """One line; and a download delay, which would hold up all hosts at once, is put out."""
    if found := unused(spider, settings):
        logger.warning("Set, but without effect in a crawl by the frontier: %s.", "; ".join(found))
    settings.set("DOWNLOAD_DELAY", 0, max(settings.getpriority("DOWNLOAD_DELAY") or 0, _SPIDER))


def _wished(name: str, settings: BaseSettings) -> bool:
    """Whether it was set, and not only to off."""
    priority = settings.getpriority(name) or 0
    if priority < _PROJECT:
        return False
    value: Any = settings.get(name)
    if name.endswith("_ENABLED"):
        return settings.getbool(name)
    if priority == _PROJECT and value in (_TEMPLATE.get(name), getattr(ours, name, None)):
        return False
    return value not in (None, "", 0, "0")
