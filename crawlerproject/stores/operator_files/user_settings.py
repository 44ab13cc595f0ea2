"""The operator's own settings, outside the checkout so that no upgrade meets them: a file, and the environment.

``~/.config/polite-crawler/settings.toml`` (XDG_CONFIG_HOME counts) stands above ``settings.py`` and below a crawl's
``crawl.toml``. A variable ``POLITE_NAME`` is the setting NAME of this start: above a spider's, below ``-s``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USER_FOLDER = "~/.config/polite-crawler"
"""XDG Base Directory Specification."""
_FILE = f"{USER_FOLDER}/settings.toml"
_PREFIX = "POLITE_"
ANYWHERE = "CRAWLERPROJECT_ANYWHERE"
"""Set in the environment by the installed command, which is run in any folder, and so for processes that it starts."""
ENVIRONMENT_PRIORITY = 35
"""Above Scrapy's ``spider`` (30), below ``cmdline`` (40)."""


@dataclass(slots=True)
class UserSettings:
    """What the operator has set for all crawls; ``problem``: why the file could not be used, as one sentence."""

    path: str = ""
    file: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and values; the environment wins."""
        yield from (self.file | self.environment).items()


def user_path(path: str) -> str:
    """``~/.config/…`` as this user has it (XDG_CONFIG_HOME counts), other paths as they are; "" without a home."""
    config, own = os.environ.get("XDG_CONFIG_HOME", ""), "~/.config/"
    if path.startswith(own) and os.path.isabs(config):
        return str(Path(config, path.removeprefix(own)))
    found = os.path.expanduser(path)
    return "" if found.startswith("~") else found


def read_user_settings(environment: Mapping[str, str]) -> UserSettings:
    """Both, as they are now; nothing is raised, since Scrapy reads settings before it can say a sentence."""
    given = {name.removeprefix(_PREFIX): text for name, text in environment.items() if name.startswith(_PREFIX)}
    found = UserSettings(user_path(_FILE), environment=given)
    try:
        found.file = tomllib.loads(Path(found.path).read_text("utf-8")) if found.path else {}
    except FileNotFoundError:
        pass
    except OSError as error:
        found.problem = f"{found.path} cannot be read ({error.strerror}); mend its permissions."
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        found.problem = f"{found.path} is not TOML ({error}); mend that line."
    return found
