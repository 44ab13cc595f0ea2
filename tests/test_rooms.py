"""Imports point one way: the rooms of docs/architecture.md, held by reading every import statement.

And no room or function grows beyond what one can overlook.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = "crawlerproject"

# Room -> what of ours it may import. A room that is missing here stands above the crawl: all but COMMANDS.
MAY_IMPORT = {
    "native": ("native",),
    "rules": ("rules", "native", "reasons"),
    "runtime": ("runtime",),
    # The work of a process that has nothing, and what runs it.
    "documents": ("documents", "rules"),
    "stores": ("stores", "native", "rules", "runtime", "errors", "reasons"),
    "config": ("config", "stores", "rules", "settings", "errors"),
    "fetch": ("fetch", "config", "rules", "runtime", "errors", "reasons", "request_meta"),
    # What a crawl decides and keeps; Crawl and Scrapy are built on it.
    "frontier": ("frontier", "native", "config", "stores", "rules", "runtime", "errors", "reasons"),
    "fleet": ("fleet", "frontier", "config", "stores", "rules", "runtime", "errors"),
    "parse": ("parse", "native", "guard", "frontier", "stores", "rules", "reasons", "items", "request_meta"),
    # Partly work of another process, which must start soon: no store that opens a database.
    "reading": (
        *("reading", "native", "parse", "frontier.passage", "rules", "runtime.services"),
        *("documents", "stores.protocols", "items", "errors", "reasons", "request_meta"),
    ),
    # What every request of the engine's passes, and what it is known by: below the crawl, which hands requests out.
    "middlewares": (
        *("middlewares", "reading", "parse", "guard", "frontier", "fetch", "config", "stores", "rules", "runtime"),
        *("items", "errors", "reasons", "request_meta"),
    ),
    # One running crawl. The rooms of Scrapy's other components are built on it, and find its parts by their type.
    "crawl": (
        *(
            "crawl",
            "middlewares",
            "native",
            "reading",
            "parse",
            "guard",
            "fleet",
            "frontier",
            "inspection",
            "hooks",
            "reports",
        ),
        *("fetch", "config", "settings", "stores", "rules", "runtime"),
        *("items", "errors", "reasons", "request_meta", "__version__"),
    ),
    "reports": ("reports", "stores", "rules", "errors", "reasons"),
    "guard": (
        "guard",
        "frontier",
        "fetch",
        "config",
        "stores",
        "rules",
        "runtime",
        "errors",
        "reasons",
        "request_meta",
    ),
    # A crawl seen from outside.
    "inspection": (
        *("inspection", "native", "reports", "frontier", "fetch", "config", "settings"),
        *("stores", "rules", "terminal", "errors", "reasons"),
    ),
    "batch": ("batch", "documents", "fetch", "stores", "rules", "errors", "reasons", "__version__"),
    "commands": (
        *("commands", "inspection", "reports", "batch", "addon", "fleet", "frontier", "fetch", "config", "settings"),
        *(
            "crawl.start",
            "parse.page_view",
            "render.request",
            "recovery",
            "hooks.hook_events",
            "reparse",
            "watch.fleet_summary",
            "desk",
            "stores",
            "rules",
        ),
        *(
            "operator_command",
            "terminal",
            "json_log",
            "errors",
            "reasons",
            "__version__",
        ),
    ),
}
COMMANDS = "commands"

# Rules decide: time, chance and bytes come in as arguments.
RULES_NEVER = {"asyncio", "os", "redis", "rocksdict", "scrapy", "socket", "sqlite3", "subprocess", "time", "twisted"}
# Stores keep and reports count: both work without a crawl around them.
SCRAPY = {"scrapy", "twisted"}
# What a reading process imports.
READING_PROCESS = ("reading/jobs.py", "reading/reading_process.py")
# Cores without input or output, in rooms that have it otherwise, and what does it for others.
PURE = ("fetch/http1.py",)
DOES_IO = ("stores", "runtime", "fetch.pool", "fetch.tls", "fetch.dns_servers")
# What of the frontier's room reads settings; all of its other modules are such cores.
READS_SETTINGS = "frontier/assembly.py"

FILES = sorted((ROOT / OURS).rglob("*.py"))

# Lines of a function, its docstring apart: a sequence that reads from top to bottom may have so many (ours).
MOST_LINES = 60


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Of a file's syntax tree, all."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it the statement stands; ours without the package's name."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            # ``from crawlerproject.fetch import wire`` names the module only in its last word.
            yield from (f"{module}.{alias.name}" for alias in node.names)


def ours(path: Path) -> set[str]:
    """What of ours a file imports: ``rules.urls.parse``."""
    return {name.removeprefix(f"{OURS}.") for name in imports(path) if name.startswith(f"{OURS}.")}


def foreign(path: Path) -> set[str]:
    """The top-level packages of others that a file imports."""
    return {name.split(".")[0] for name in imports(path)} - {OURS}


def room(path: Path) -> str:
    """The folder directly below the package; empty for the files beside the rooms."""
    parts = path.relative_to(ROOT / OURS).parts
    return parts[0] if len(parts) > 1 else ""


def within(name: str, allowed: tuple[str, ...]) -> bool:
    """Whether an imported name is one of these modules or below one."""
    return any(name == module or name.startswith(f"{module}.") for module in allowed)


def guilty(paths: Iterable[Path], found: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """By file: what is found in it."""
    return {str(path.relative_to(ROOT / OURS)): names for path in paths if (names := found(path))}


def test_a_room_imports_only_what_it_may() -> None:
    """rules <- stores, reports <- commands; never the other way."""

    def forbidden(path: Path) -> set[str]:
        return {name for name in ours(path) if not within(name, MAY_IMPORT[room(path)])}

    assert guilty((path for path in FILES if room(path) in MAY_IMPORT), forbidden) == {}


def test_nothing_imports_commands() -> None:
    """Commands speak to the operator: nothing else speaks through them."""

    def commands(path: Path) -> set[str]:
        return {name for name in ours(path) if within(name, (COMMANDS,))}

    assert guilty((path for path in FILES if room(path) != COMMANDS), commands) == {}


def test_rules_decide_only() -> None:
    """No clock, no files, no network, no Scrapy in a rule."""
    assert guilty((path for path in FILES if room(path) == "rules"), lambda path: foreign(path) & RULES_NEVER) == {}


def test_stores_and_reports_work_without_scrapy() -> None:
    """What is kept can be read with no crawl around it; nor does a reading process import any."""
    paths = [path for path in FILES if room(path) in {"stores", "reports"}]
    paths += [ROOT / OURS / name for name in READING_PROCESS]

    assert guilty(paths, lambda path: foreign(path) & SCRAPY) == {}


def test_the_frontier_takes_time_and_settings_as_values() -> None:
    """No clock, no thread, no Scrapy; but for one module no settings."""
    paths = [path for path in FILES if room(path) == "frontier" and path != ROOT / OURS / READS_SETTINGS]

    assert guilty(paths, lambda path: foreign(path) & RULES_NEVER) == {}
    assert guilty(paths, lambda path: {name for name in ours(path) if within(name, ("config",))}) == {}


def test_pure_cores_stay_pure() -> None:
    """The reader of HTTP gets bytes and time as arguments, and asks no module that reads either."""
    paths = [ROOT / OURS / name for name in PURE]

    assert guilty(paths, lambda path: foreign(path) & RULES_NEVER) == {}
    assert guilty(paths, lambda path: {module for module in ours(path) if within(module, DOES_IO)}) == {}


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From its name to its end, without its docstring."""
    assert function.end_lineno is not None
    first = function.body[0]
    described = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if described else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_functions_read_from_top_to_bottom() -> None:
    """A longer one does two things."""
    long = {
        f"{path.relative_to(ROOT / OURS)}: {node.name}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > MOST_LINES
    }

    assert long == set()


def test_a_docstring_does_not_make_a_function_longer() -> None:
    """The count above rests on it."""
    (function,) = ast.parse('def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    return a\n').body
    assert isinstance(function, ast.FunctionDef)

    assert lines_of(function) == 4


def test_the_reader_of_imports_sees_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above rest on it: absolute, relative, inside a function, behind TYPE_CHECKING."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / OURS / "rules" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import time\n"
        "from crawlerproject.rules import urls\n"
        "from ..errors import FetchError\n"
        "from . import scope\n"
        "if TYPE_CHECKING:\n    from crawlerproject.rules.archive.http_messages import Wire\n"
        "def f():\n    import os.path\n"
    )

    assert ours(path) == {"rules.urls", "errors.FetchError", "rules.scope", "rules.archive.http_messages.Wire"}
    assert foreign(path) == {"time", "os"}
