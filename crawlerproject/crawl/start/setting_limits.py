"""What a setting may be, found out before the start: numbers within bounds, files that are there, Scrapy's own too.

And what a crawl that signs its requests needs: a key of its own, and a directory that names it.
"""

from __future__ import annotations

import logging
import os
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from crawlerproject.config.settings_table import ALL, SETTINGS, Kind, Setting
from crawlerproject.config.values import check_local_address, list_of, own_keys, ranges_of
from crawlerproject.errors import OperatorError
from crawlerproject.fetch.http1 import SIGNATURE_FIELDS
from crawlerproject.fetch.tls import make_context
from crawlerproject.rules.politeness.pauses import HostPaces
from crawlerproject.stores.operator_files.user_settings import ANYWHERE, user_path
from crawlerproject.stores.operator_files.watched_lists import lines_of

logger = logging.getLogger(__name__)

USER_LIST = "NEVERCRAWL_USER_FILE"
_PROJECT = SETTINGS_PRIORITIES["project"]
_BOOLEANS = frozenset({"true", "1", "false", "0"})
_ANY_WHOLE = Setting(Kind.WHOLE, 0, least=-(2**53))  # of Scrapy's settings, of which no bounds are known
_ANY_NUMBER = _ANY_WHOLE._replace(kind=Kind.NUMBER)
# Settings that a project with our add-on need not have.
_MAY_BE_MISSING = {name: SETTINGS[name].default for name in (USER_LIST, "FETCH_HOSTS_FILE")}


def check_values(settings: BaseSettings) -> None:
    """Check our settings: kinds, bounds, addresses and files. Raises OperatorError."""
    for name, setting in ALL.items():
        if (value := settings.get(name)) is None:  # another project's settings, without ours
            continue
        if setting.kind is Kind.SWITCH:
            _check_boolean(name, value)
        elif setting.kind in (Kind.WHOLE, Kind.NUMBER):
            _check_number(name, value, setting)
        elif setting.kind is Kind.ADDRESS:
            _check_ip(
                str(value or setting.default),
                f"{name} is {value!r}; use an IP address of this machine, such as 127.0.0.1.",
            )
        elif setting.kind is Kind.FILE:
            _check_file(settings, name)
        else:
            check_word(name, value, setting)
    _check_host_paces(str(settings["HOST_PACE_FILE"] or ""))
    ranges_of(settings)
    for server in list_of(settings, "FETCH_DNS_SERVERS"):
        address = server.partition(":")[0] if server.count(":") == 1 else server.strip("[]")
        _check_ip(address, f"FETCH_DNS_SERVERS has {server!r}; give IP addresses, as 9.9.9.9.")
    if "/" in str(settings["WARC_PREFIX"]):
        raise OperatorError(f"WARC_PREFIX is {settings['WARC_PREFIX']!r}; it begins files' names and has no slash.")
    if settings["FETCH_CA_FILE"]:
        make_context(settings["FETCH_CA_FILE"])


def check_word(name: str, value: object, setting: Setting) -> None:
    """Raises OperatorError for another value than those that a setting may have."""
    if setting.words and value not in setting.words:
        raise OperatorError(f"{name} is {value!r}; use one of {', '.join(setting.words)}.")


def check_scrapys(settings: BaseSettings) -> None:
    """Scrapy's own that were given, before the log is opened with them. Raises OperatorError."""
    _check_log(settings)
    check_local_address(settings)
    for name in settings:
        default = getattr(default_settings, name, None)
        if name in SETTINGS or (settings.getpriority(name) or 0) <= _PROJECT or settings[name] is None:
            continue
        if isinstance(default, bool):
            _check_boolean(name, settings[name])
        elif isinstance(default, (int, float)):
            _check_number(name, settings[name], _ANY_WHOLE if name in _WHOLE_OF_SCRAPY else _ANY_NUMBER)


# Read with ``getint`` there, although they are numbers like others.
_WHOLE_OF_SCRAPY = frozenset(
    name
    for name, value in vars(default_settings).items()
    if name.isupper() and isinstance(value, int) and not name.endswith(("_DELAY", "_TIMEOUT", "_INTERVAL", "_EXP"))
)


def _check_boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool) and str(value).lower() not in _BOOLEANS:
        raise OperatorError(f"{name} is {value!r}; use True or False.")


def _check_number(name: str, value: Any, setting: Setting) -> None:
    try:
        number = int(value) if setting.kind is Kind.WHOLE else float(value)
        if number != value and not isinstance(value, str):  # a fraction, from a file
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise OperatorError(f"{name} is {value!r}; it must be {setting.kind}.") from None
    least, most = setting.least, setting.most
    if (number < 0 and least >= 0) or number == float("inf") or number != number:
        raise OperatorError(f"{name} is {value!r}; it must not be negative or infinite.")
    if number == 0 and (least > 0 or setting.above_least):
        raise OperatorError(f"{name} is 0; it must be above zero.")
    if not least <= number <= most:
        raise OperatorError(f"{name} is {value}; it must be from {least:g} to {most:,.0f}.")


def _check_ip(text: str, problem: str) -> None:
    try:
        ip_address(text)
    except ValueError:
        raise OperatorError(problem) from None


def _check_file(settings: BaseSettings, name: str) -> None:
    """Refuse a list that cannot be read: it would exclude nothing."""
    path = str(settings[name] or "")
    # The default is not there in a project with our add-on.
    if not path or (settings.getpriority(name) or 0) < _PROJECT:
        return
    found = user_path(path) if name == USER_LIST else path
    if path == _MAY_BE_MISSING.get(name) and not (found and os.path.exists(found)):
        return
    if path == SETTINGS[name].default and ANYWHERE in os.environ and not os.path.exists(path):
        return  # a checkout has the project's list; an installed command is run where there is none
    try:
        with open(found, "rb") as file:
            file.read(1)
    except OSError as error:
        raise OperatorError(
            f"{name} {Path(found).absolute()} cannot be read ({error.strerror}); make it (it may be empty), "
            f"give its absolute path, or set {name}= for none."
        ) from error


def _check_host_paces(path: str) -> None:
    """A line that is skipped while the crawl runs is a pause that a site's owner does not get."""
    if not path:
        return
    _, problems = HostPaces.parse(lines_of(Path(path)))
    if problems:
        first = problems[0]
        more = f" ({len(problems):,} such lines)" if len(problems) > 1 else ""
        raise OperatorError(f"HOST_PACE_FILE {path}, line {first.line}: {first.text!r} {first.why}{more}.")


def _check_log(settings: BaseSettings) -> None:
    level = settings["LOG_LEVEL"]
    if not isinstance(level, int) and level not in logging.getLevelNamesMapping():
        raise OperatorError(f"LOG_LEVEL is {level!r}; use DEBUG, INFO, WARNING, ERROR or CRITICAL.")
    try:
        logging.Formatter(settings["LOG_FORMAT"], settings["LOG_DATEFORMAT"])
    except ValueError as error:
        raise OperatorError(f"LOG_FORMAT is {settings['LOG_FORMAT']!r}: {error}.") from None
    path = settings["LOG_FILE"]
    try:
        "".encode(settings["LOG_ENCODING"] or "utf-8")
        if path:
            with open(path, "ab"):
                pass
    except LookupError:
        raise OperatorError(f"LOG_ENCODING is {settings['LOG_ENCODING']!r}; use utf-8.") from None
    except OSError as error:
        raise OperatorError(f"LOG_FILE {path} cannot be written ({error.strerror}); give another.") from None


def check_signing(settings: BaseSettings) -> None:
    """The part that asks nothing of the network. Raises OperatorError."""
    if not settings.get("IDENTITY_KEY_FILE"):
        return
    from crawlerproject.fetch.signing import signer_in  # no other crawl imports what signs

    signer_in(settings)
    for name in settings.getdict("DEFAULT_REQUEST_HEADERS"):
        if str(name).title().encode("ascii", "replace") in SIGNATURE_FIELDS:
            raise OperatorError(
                f"DEFAULT_REQUEST_HEADERS sets {name}, which IDENTITY_KEY_FILE has the crawler set; take one out."
            )


def check_directory(settings: BaseSettings) -> None:
    """Refuse to sign what no verifier would take for ours. Raises OperatorError; doubt is a warning.

    A directory that cannot be reached now does not stop a crawl: verifiers go by the copy that they have.
    """
    if not settings.get("IDENTITY_KEY_FILE"):
        return
    from crawlerproject.fetch.key_directory import advice, flaws, is_passing, served_directory

    ring = own_keys(settings)
    assert ring is not None
    now = time.time()
    signed = f"Requests are signed with the key {ring.signing(now).keyid} of {ring.agent}"
    try:
        served = served_directory(settings, ring)
    except OSError as error:
        logger.warning("%s; its key directory does not answer now: %s", signed, error)
        return
    if is_passing(served):
        logger.warning("%s; its key directory is answered with status %d now", signed, served.status)
        return
    for sentence in flaws(served, ring, now):
        raise OperatorError(sentence)
    logger.info("%s", signed)
    for sentence in advice(served, ring, now):
        logger.warning("Key directory: %s", sentence)
