"""docs/commands.md is what its script writes: all of it but what the commands printed, which stands there as it was."""

from __future__ import annotations

import difflib
import re

from tests.scripts.loading import loaded

_BLOCK = re.compile(r"^```\n\$ scrapy (.*)\n((?:.*\n)*?)```$", re.MULTILINE)


def test_the_page_is_the_result_of_its_script() -> None:
    """Every command, its arguments, its text and its runs: after a change of these the script is run again."""
    script = loaded("commands_doc")
    there = script.PAGE.read_text(encoding="utf-8")
    printed = {run.arguments: "" for run in script.runs(script.PORT)} | dict(_BLOCK.findall(there))

    made = script.page(printed)

    assert list(difflib.unified_diff(there.splitlines(), made.splitlines(), "docs/commands.md", "made", n=0)) == []
