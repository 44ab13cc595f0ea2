"""The docs say what the code does: settings, reasons and statistics, in both directions."""

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.settings import default_settings

from crawlerproject import native
from crawlerproject.config.settings_table import FORMER, RENAMED, WITHOUT_EFFECT
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import PRESETS
from crawlerproject.settings import OURS

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = (ROOT / "docs" / "settings.md").read_text()
REASONS = (ROOT / "docs" / "reasons.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

# A default too long to print is documented as "the list in `FILE`".
ELSEWHERE = re.compile(r"the list in `([\w/.]+)`")
STAT_CALLS = {"inc_value", "set_value", "max_value", "min_value"}


def sections(page: str) -> dict[str, str]:
    """The text below each ``###`` heading, up to the next heading."""
    parts = re.split(r"^#{2,3} (.+)$", page, flags=re.MULTILINE)
    names = set(re.findall(r"^### (.+)$", page, flags=re.MULTILINE))
    return {name: text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name in names}


def stat_keys() -> Iterator[str]:
    """The beginning of every statistics key that the code counts; the whole key when it is a constant."""
    for path in sorted((ROOT / "crawlerproject").rglob("*.py")):
        text = path.read_text()
        if not any(call in text for call in STAT_CALLS):  # every worker of the tests comes by here
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STAT_CALLS:
                key = node.args[0]
                first = key.values[0] if isinstance(key, ast.JoinedStr) else key
                if isinstance(first, ast.Constant):
                    yield str(first.value)


def test_every_setting_is_documented() -> None:
    """No setting without its paragraph, no paragraph without its setting, in the same order or not."""
    assert set(sections(SETTINGS)) == set(OURS)


@pytest.mark.parametrize("name", OURS)
def test_a_settings_default_is_the_documented_one(name: str) -> None:
    """The line "Default: `…`" is the value in settings.py."""
    match = re.match(r"\s*Default: (.+?)(?: · .+)?\n\n(.+)", sections(SETTINGS)[name])
    assert match, f"{name} needs a line with its default, and a paragraph"
    default = match[1]
    elsewhere = ELSEWHERE.fullmatch(default)
    if elsewhere:
        assert (ROOT / elsewhere[1]).is_file()
    else:
        assert ast.literal_eval(default.strip("`")) == OURS[name]


def test_every_preset_is_documented() -> None:
    """The table of presets has the numbers of rules/politeness/pauses.py."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|[^|]*\|$", SETTINGS, flags=re.MULTILINE))

    assert set(rows) == set(PRESETS)
    for name, preset in PRESETS.items():
        multiplier, window, least, most, start = (cell.strip() for cell in rows[name].split("|"))
        assert float(multiplier) == preset.multiplier
        assert window == "–" or int(window) == preset.window
        assert float(least) == preset.min_seconds
        assert (None if most == "none" else float(most)) == preset.max_seconds
        assert float(start) == preset.start_seconds


def test_every_reason_is_documented() -> None:
    """The headings of docs/reasons.md are the words of the enum, with something below each."""
    documented = sections(REASONS)

    assert set(documented) == {str(reason) for reason in Reason}
    assert [word for word, text in documented.items() if not text.strip()] == []


@pytest.mark.parametrize("key", sorted(set(stat_keys())))
def test_every_statistic_is_documented(key: str) -> None:
    """Each key, or what stands before its last part, is in the table of docs/reasons.md."""
    assert f"`{key}" in REASONS


def commands() -> list[str]:
    """The names of the project's commands."""
    found = sorted((ROOT / "crawlerproject" / "commands").glob("*.py"))
    return [path.stem for path in found if re.search(r"^class Command\(", path.read_text(), flags=re.MULTILINE)]


@pytest.mark.parametrize("name", commands())
def test_every_command_is_documented(name: str) -> None:
    """Some page says what ``scrapy NAME`` does; docs/commands.md, made by scripts/commands_doc.py, is the first."""
    assert any(f"scrapy {name}" in page.read_text() for page in PAGES)


def test_the_page_of_commands_has_no_stranger() -> None:
    """Each heading of docs/commands.md is a command that exists, with what it printed or an example."""
    page = (ROOT / "docs" / "commands.md").read_text()
    sections = re.split(r"^## scrapy ", page, flags=re.MULTILINE)[1:]

    assert {section.partition("\n")[0] for section in sections} <= set(commands())
    silent = [text.partition("\n")[0] for text in sections if "$ scrapy " not in text and "For example" not in text]
    assert silent == []


@functools.cache
def anchors(page: Path) -> set[str]:
    """What a forge, and the site, make of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w -]", "", heading).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page is a file, and its anchor a heading there."""
    wrong = []
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" not in link and not (target.is_file() and (not anchor or anchor in anchors(target))):
            wrong.append(link)

    assert wrong == []


def test_every_page_is_in_the_sites_lists() -> None:
    """A page that docs/index.md does not name is found by no reader of the site: add it to one of the lists there."""
    index = (ROOT / "docs" / "index.md").read_text()
    blocks = re.findall(r"(?s)```{toctree}.*?\n\n(.*?)```", index)
    listed = " ".join(blocks).split()
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in (ROOT / "docs").rglob("*.md")} - {"index"}

    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_settings_that_are_named_exist(page: Path) -> None:
    """A word in code type that looks like a setting of ours is one."""
    prefixes = {name.partition("_")[0] for name in OURS}
    named = set(re.findall(r"`(?:-s )?([A-Z]+_[A-Z_]*[A-Z])\b", page.read_text()))

    known = {*OURS, *FORMER, *dir(default_settings), *RENAMED, native.ENVIRONMENT}
    if page.name in ("CHANGELOG.md", "settings.md"):
        known |= WITHOUT_EFFECT.keys()
    assert {name for name in named if name.partition("_")[0] in prefixes} <= known


def test_every_test_says_what_it_proves() -> None:
    """Each test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]

    assert silent == []


def test_files_that_the_architecture_names_are_there() -> None:
    """Every path in the page exists, below the package or the root."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)*\.py)[`:]", page))
    tops = (ROOT, ROOT / "crawlerproject")

    assert len(named) > 30
    assert {path for path in named if not any((top / path).is_file() for top in tops)} == set()


_ROW = re.compile(r"^\| [^|]+ \| `([a-z_/]+)\.py` \| `([A-Z_]+)` ([0-9,]+) \|", re.MULTILINE)
MEMORY_ROWS = _ROW.findall((ROOT / "docs" / "scale.md").read_text())


@pytest.mark.parametrize(("module", "name", "number"), MEMORY_ROWS)
def test_bounds_of_tables_in_memory_are_the_codes(module: str, name: str, number: str) -> None:
    """Each row of the table in docs/scale.md that names a constant."""
    found = importlib.import_module("crawlerproject." + module.replace("/", "."))
    assert getattr(found, name) == int(number.replace(",", ""))


PRACTICES = (ROOT / "docs" / "best-practices.md").read_text()
PROOFS = sorted(set(re.findall(r"`([a-z_/]+\.py)::(test_\w+)`", PRACTICES)))


@pytest.mark.parametrize(("file", "name"), PROOFS)
def test_each_practice_has_the_test_that_is_named(file: str, name: str) -> None:
    """Of docs/best-practices.md."""
    assert re.search(rf"^(?:async )?def {name}\(", (ROOT / "tests" / file).read_text(), flags=re.MULTILINE)


def test_each_practice_has_its_code() -> None:
    """Files that the tables name exist, and every row has both or is the operator's."""
    rows = [line.split(" | ") for line in PRACTICES.splitlines() if line.startswith("| ") and " | " in line]
    rows = [row for row in rows if row[0] != "| asked"]
    code = {path for row in rows for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.\w+)`", row[1])}

    assert len(rows) > 30
    assert {path for path in code if not (ROOT / "crawlerproject" / path).is_file()} == set()
    without = [row[0] for row in rows if "::test_" not in row[2] and row[2] != "– |"]
    assert without == []
