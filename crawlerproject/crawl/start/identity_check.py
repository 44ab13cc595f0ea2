"""What a crawl that signs its requests needs before the first one: a key of its own, and a directory that names it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from crawlerproject.config.values import own_keys
from crawlerproject.errors import OperatorError
from crawlerproject.fetch.http1 import SIGNATURE_FIELDS

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


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
