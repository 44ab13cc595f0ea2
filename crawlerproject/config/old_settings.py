"""Settings of earlier versions: a renamed one counts under its new name, one that is a constant now holds if given.

An old settings file, ``crawl.toml``, environment or command line goes on working; one line at the start lists the old
names in use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from crawlerproject.config.settings_table import ALL, FORMER, RENAMED, SETTINGS, WITHOUT_EFFECT

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


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
    """Log the same in one line. Before a crawler freezes its settings."""
    if messages := take_old_names(settings):
        logger.warning("Settings of an earlier version: %s.", "; ".join(messages))
