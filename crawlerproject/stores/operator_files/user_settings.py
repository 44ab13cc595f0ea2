"""The operator's own settings: a file outside the checkout, which upgrades leave alone, and the environment.

``~/.config/polite-crawler/settings.toml`` (XDG_CONFIG_HOME is respected) takes precedence over ``settings.py``, a
crawl's ``crawl.toml`` over both. A variable ``POLITE_NAME`` sets NAME for one start: above a spider's settings, below
``-s``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USER_FOLDER = "~/.config/polite-crawler"
"""XDG Base Directory Specification."""
_FILE = f"{USER_FOLDER}/settings.toml"
_PREFIX = "POLITE_"
ANYWHERE = "CRAWLERPROJECT_ANYWHERE"
"""Environment variable that the installed command sets, for its child processes too: it may run in any folder."""
ENVIRONMENT_PRIORITY = 35
"""Above Scrapy's ``spider`` (30), below ``cmdline`` (40)."""


@dataclass(slots=True)
class UserSettings:
    """Settings for all crawls; ``problem`` is one sentence on why the file could not be used, "" if it could."""

    path: str = ""
    file: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and values; those of the environment take precedence."""
        yield from (self.file | self.environment).items()


def user_path(path: str) -> str:
    """A path with ``~/.config`` (XDG_CONFIG_HOME is respected) and ``~`` expanded; "" for a user without a home."""
    config, own = os.environ.get("XDG_CONFIG_HOME", ""), "~/.config/"
    if path.startswith(own) and os.path.isabs(config):
        return str(Path(config, path.removeprefix(own)))
    found = os.path.expanduser(path)
    return "" if found.startswith("~") else found


def read_user_settings(environment: Mapping[str, str]) -> UserSettings:
    """File and environment as they are now. Raises nothing: Scrapy reads settings before it can report an error."""
    given = {name.removeprefix(_PREFIX): text for name, text in environment.items() if name.startswith(_PREFIX)}
    found = UserSettings(user_path(_FILE), environment=given)
    try:
        text = Path(found.path).read_text("utf-8") if found.path else ""
    except FileNotFoundError:
        return found
    except OSError as error:
        found.problem = f"{found.path} cannot be read ({error.strerror}); mend its permissions."
        return found
    except UnicodeDecodeError as error:
        found.problem = f"{found.path} is not TOML ({error}); mend that line."
        return found
    import tomllib  # by users who have such a file only

    try:
        found.file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found.problem = f"{found.path} is not TOML ({error}); mend that line."
    return found
