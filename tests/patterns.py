"""Every regular expression of the crawler, found by itself, and the texts that would hurt it were it not linear."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
# Characters of which one is in nearly every class, and one outside of it.
_USUAL = "a1 -/<>=;,.%\"'&_:Aé世\n\t\r\x00!zZ9"
_MOST_ATTACKS = 120


class Found(NamedTuple):
    """One expression of the code: where it stands, what it is, and what is asked of it."""

    place: str  # file:line, and the name it is bound to
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def all_patterns(package: Path) -> Iterator[Found]:
    """Every ``re.compile`` and every direct ``re.`` call under ``package``; unreadable ones raise."""
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node, bound in _calls(tree):
            method = node.func.attr  # type: ignore[attr-defined]
            place = f"{path.relative_to(package.parent)}:{node.lineno} {bound}".strip()
            pattern = _built(path, node, bound)
            methods = frozenset({method}) if method in _METHODS else _asked(package, tree, bound)
            yield Found(place, pattern, methods)


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Calls of functions of ``re`` that take an expression, with the name that the result is bound to."""
    names = {
        id(call): target.id
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name)
        for call in ast.walk(statement.value)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in _METHODS | {"compile"}
        ):
            yield node, names.get(id(node), "")


def _built(path: Path, node: ast.Call, bound: str) -> re.Pattern[Any]:
    """The compiled expression: computed from the module's own names where it is no literal."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    names = vars(__import__(module, fromlist=["_"]))
    arguments = [node.args[0], *[keyword.value for keyword in node.keywords if keyword.arg == "flags"]]
    if node.func.attr == "compile":  # type: ignore[attr-defined]
        arguments += node.args[1:2]
    text, *flags = [eval(compile(ast.Expression(a), str(path), "eval"), dict(names)) for a in arguments]
    return re.compile(text, *flags)


def _asked(package: Path, tree: ast.Module, bound: str) -> frozenset[str]:
    """The methods that any module calls by this name; all of them when there is no telling."""
    found = set()
    for path in package.rglob("*.py"):
        found |= set(re.findall(rf"\b{bound}\.(\w+)", path.read_text("utf-8"))) if bound else set()
    for node in ast.walk(tree):  # NAME = re.compile(...).fullmatch
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and node.attr in _METHODS:
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr == "compile":
                found |= {node.attr} if re.search(rf"^{bound} = re\.compile", ast.unparse(tree), re.M) and _is(
                    tree, bound, node
                ) else set()
    return frozenset(found & _METHODS) or frozenset({"match", "fullmatch", "search"})


def _is(tree: ast.Module, bound: str, node: ast.Attribute) -> bool:
    return any(
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == bound
        and statement.value is node
        for statement in ast.walk(tree)
    )


def attacks(pattern: re.Pattern[Any], size: int) -> Iterator[Any]:
    """Texts of about ``size`` characters made for the pattern: runs of what it has, prefixes, near misses."""
    seen = set()
    for start, unit, end in islice(_plans(pattern), 10 * _MOST_ATTACKS):
        if not unit or (start, unit, end) in seen:
            continue
        seen.add((start, unit, end))
        text = start + unit * (size // len(unit)) + end
        try:
            yield text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
        except UnicodeEncodeError:
            continue
        if len(seen) == _MOST_ATTACKS:
            return


def _plans(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """(start, what is repeated, end)."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0))
    singles = list(dict.fromkeys(_characters(tree)))
    literals = list(dict.fromkeys(text for text in _literals(tree) if text))
    repeats = list(_repeats(tree, ""))
    for unit in [*singles, *literals]:
        yield "", unit, ""
    for start, units in repeats:
        for unit, end in product(units, ("", "\x00", "!")):
            yield start, unit, end  # one start, a run, a near miss
            yield "", f"{start}{unit * 1000}{end}", ""  # some hundreds of them
        for unit in units:
            yield "", start + unit, ""  # many starts
            yield start * 1000 if start else "", unit, ""
    for start, units in repeats:
        for one, other in product(units, ("a", " ", "/", "<", "1", "\n")):
            yield start, one + other, "\x00"
    for literal, unit in product(literals, singles):
        yield "", literal + unit, ""
        yield literal, unit, "\x00"


def _characters(tree: Any) -> Iterator[str]:
    """Members of each class and literal of a parsed expression."""
    for op, argument in tree:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            yield from _members(op, argument)
        for inner in _inner(op, argument):
            yield from _characters(inner)


def _members(op: Any, argument: Any) -> list[str]:
    """Some characters that one element matches, and for a class one that it does not."""
    if op is sre.LITERAL:
        return [chr(argument)]
    if op is sre.ANY:
        return ["a", "."]
    if op is sre.NOT_LITERAL:
        return [next(c for c in _USUAL if ord(c) != argument), chr(argument)]
    one = re.compile(_class_text(argument))
    inside = [chr(low) for kind, low in _ends(argument) if one.fullmatch(chr(low))]
    inside += [character for character in _USUAL if one.fullmatch(character)]
    outside = [character for character in _USUAL if not one.fullmatch(character)]
    return [*dict.fromkeys(inside)][:6] + outside[:1]


def _ends(members: list[tuple[Any, Any]]) -> Iterator[tuple[Any, int]]:
    for kind, value in members:
        if kind is sre.LITERAL:
            yield kind, value
        elif kind is sre.RANGE:
            yield kind, value[0]


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _class_text(members: list[tuple[Any, Any]]) -> str:
    """The class as an expression again."""
    text = ""
    for kind, value in members:
        if kind is sre.NEGATE:
            text += "^"
        elif kind is sre.LITERAL:
            text += re.escape(chr(value))
        elif kind is sre.RANGE:
            text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            text += _CATEGORIES[value]
    return f"[{text}]"


def _inner(op: Any, argument: Any) -> list[Any]:
    """The expressions within an element."""
    if op is sre.SUBPATTERN:
        return [argument[3]]
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [argument[2]]
    if op is sre.BRANCH:
        return list(argument[1])
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [argument[1]]
    if op is sre.ATOMIC_GROUP:
        return [argument]
    if op is sre.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part is not None]
    return []


def _literals(tree: Any) -> Iterator[str]:
    """The longest literal texts of an expression."""
    text = ""
    for op, argument in tree:
        if op is sre.LITERAL:
            text += chr(argument)
            continue
        yield text
        text = ""
        for inner in _inner(op, argument):
            yield from _literals(inner)
    yield text


def _sample(tree: Any, least: int = 0) -> str:
    """The shortest of the texts that an expression matches, more or less; with ``least`` 1 nothing is left out."""
    text = ""
    for op, argument in tree:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            text += _members(op, argument)[0]
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            text += _sample(argument[2], least) * min(max(argument[0], least), 64)
        elif op is sre.BRANCH:
            text += _sample(argument[1][0], least)
        elif op in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            text += _sample(_inner(op, argument)[0], least)
    return text


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """Each repetition: what comes before it, and texts that it repeats."""
    fuller = before  # with one of all that may be missing
    for op, argument in tree:
        for start in dict.fromkeys((before, fuller)):
            if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[1] > 2:
                units = [_sample(argument[2]), *_characters(argument[2])]
                yield start, list(dict.fromkeys(unit for unit in units if unit))[:5]
            for inner in _inner(op, argument):
                yield from _repeats(inner, start)
        before += _sample([(op, argument)])
        fuller += _sample([(op, argument)], least=1)
