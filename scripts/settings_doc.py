"""Write what docs/settings.md says of defaults, bounds and names, from ``crawlerproject/config/settings_table.py``.

``python scripts/settings_doc.py`` rewrites the line below each heading and the last section; the paragraphs are written
by hand, in that page. With ``--check`` nothing is written, and a page that is not current is exit status 1.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from crawlerproject.config.settings_table import (  # noqa: E402
    FORMER,
    LARGEST,
    RENAMED,
    SETTINGS,
    WITHOUT_EFFECT,
    Kind,
    Setting,
)

PAGE = ROOT / "docs" / "settings.md"
_COLUMNS = 138
_LAST = "## Names of earlier versions\n"
_LISTED_ELSEWHERE = {"SKIP_EXTENSIONS": "crawlerproject/rules/url/refused_urls.py"}  # too long for one line
_UNBOUNDED = (Setting(Kind.WHOLE, 0).most, LARGEST)


def facts(name: str, setting: Setting) -> str:
    """The line below a setting's heading."""
    elsewhere = _LISTED_ELSEWHERE.get(name)
    default = f"the list in `{elsewhere}`" if elsewhere else f"`{_written(setting.default)}`"
    return " · ".join([f"Default: {default}", *_limits(setting), *_marks(setting)])


def _limits(setting: Setting) -> list[str]:
    """What the value may be, where its default and its paragraph do not tell."""
    if setting.words:
        return [f"one of {', '.join(f'`{word}`' for word in setting.words)}"]
    if setting.kind not in (Kind.WHOLE, Kind.NUMBER):
        return []
    if setting.most not in _UNBOUNDED:
        return [f"from {setting.least:,.0f} to {setting.most:,.0f}"]
    if setting.above_least:
        return [f"above {setting.least:g}"]
    return [f"at least {setting.least:g}"] if setting.least else []


def _marks(setting: Setting) -> list[str]:
    found = ["[fixed](running.md#what-the-folder-remembers)"] if setting.decisive else []
    return found + [f"earlier: `{old}`" for old in setting.earlier]


def _written(value: Any) -> str:
    """As Python code, long numbers in groups."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000 else repr(value)


def earlier_names() -> str:
    """The last section."""
    renamed = ", ".join(f"`{old}` (now `{new}`)" for old, new in RENAMED.items())
    constants = ", ".join(f"`{name}`" for name in FORMER)
    ignored = ", ".join(f"`{name}` ({value:,})" for name, value in WITHOUT_EFFECT.items())
    paragraphs = (
        "Old names go on working, wherever they are set. One line at the start lists those in use.",
        f"Renamed: {renamed}.",
        "Settings up to 1.7.0 that are constants in the code now, since no crawl needed another value. One that "
        f"is given still applies: {constants}.",
        f"Settings of still earlier versions that have no effect, with the value that always holds: {ignored}.",
    )
    wrapped = (textwrap.fill(text, _COLUMNS, break_long_words=False, break_on_hyphens=False) for text in paragraphs)
    return "\n".join(f"{text}\n" for text in (_LAST.strip(), *wrapped))


def current(page: str) -> str:
    """The page with what the table says. Raises SystemExit for a heading without its setting, or the reverse."""
    page = page.partition(_LAST)[0].rstrip() + "\n"
    headings = re.findall(r"^### ([A-Z_]+)$", page, flags=re.MULTILINE)
    if wrong := set(headings) ^ SETTINGS.keys():
        raise SystemExit(f"docs/settings.md and the table differ in {', '.join(sorted(wrong))}")
    for name, setting in SETTINGS.items():
        page = re.sub(rf"(?<=^### {name}\n)Default: .*", lambda _: facts(name, setting), page, flags=re.MULTILINE)  # noqa: B023
    return f"{page}\n{earlier_names()}"


def main(arguments: list[str]) -> int:
    """Exit status 1: the page was not current."""
    before = PAGE.read_text()
    after = current(before)
    if "--check" not in arguments:
        PAGE.write_text(after)
        return 0
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
