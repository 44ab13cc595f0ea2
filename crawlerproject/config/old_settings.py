"""Settings of earlier versions: a renamed one counts under its new name, one that is a constant now has no effect.

An old settings file, ``crawl.toml``, environment or command line goes on working; one line at the start says so.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from crawlerproject.settings import constant, renamed

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


def take_old_names(settings: BaseSettings) -> list[str]:
    """Give renamed settings their new names, at the priority at which they were set; what there is to say of each."""
    said = []
    for old, new in renamed.items():
        if (priority := settings.getpriority(old)) is None:
            continue
        said.append(f"{old} is {new} now")
        if priority > (settings.getpriority(new) or 0):
            settings.set(new, settings[old], priority)
    return said + [
        f"{name} has no effect, it is always {value:,}" for name, value in constant.items() if name in settings
    ]


def warn_old_names(settings: BaseSettings) -> None:
    """The same, said in one line. Before a crawler freezes its settings."""
    if said := take_old_names(settings):
        logger.warning("Settings of an earlier version: %s.", "; ".join(said))
