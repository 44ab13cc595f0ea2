"""Every regular expression of the crawler, found by itself, and the texts that would hurt it were it not linear."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
# Characters of which one is in nearly every class, and one outside of it.
_USUAL = "a1 -/<>=;,.%\"'&_:Aé世\n\t\r\x00!zZ9"
_MOST_ATTACKS = 150  # of one pattern


class Found(NamedTuple):
    """One expression of the code: where it stands, what it is, and what is asked of it."""

    place: str  # file:line
    name: str  # that it is bound to; "" for none
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def files(package: Path) -> list[Path]:
    """Those under ``package`` that have expressions."""
    return [path for path in sorted(package.rglob("*.py")) if "import re\n" in path.read_text("utf-8")]


@cache
def patterns_of(path: Path, package: Path) -> list[Found]:
    """Every ``re.compile`` and every direct ``re.`` call of a file; unreadable ones raise."""
    tree = ast.parse(path.read_text("utf-8"))
    bound = dict(_bound(tree))
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not (method := _method_of_re(node.func)):
            continue
        name, methods = bound.get(id(node), ("", set()))
        if method in _METHODS:
            methods = {method}
        elif name:
            methods = methods | _asked(package).get(name, set())
        place = f"{path.relative_to(package.parent)}:{node.lineno}"
        found.append(Found(place, name, _built(path, node), frozenset(methods or {"match", "fullmatch", "search"})))
    return found


def _bound(tree: ast.Module) -> Iterator[tuple[int, tuple[str, set[str]]]]:
    """By the call's id: the name that it, or a method of what it makes, is bound to, and that method."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            value = statement.value
            method = {value.attr} if isinstance(value, ast.Attribute) else set[str]()
            for call in ast.walk(value):
                yield id(call), (target.id, method)


def _method_of_re(function: ast.expr) -> str:
    """What is called of ``re``; "" when that is none of ours."""
    match function:
        case ast.Attribute(ast.Name("re"), method) if method in _METHODS | {"compile"}:
            return method
    return ""


def _built(path: Path, node: ast.Call) -> re.Pattern[Any]:
    """The compiled expression: computed from the module's own names where it is no literal."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    names = vars(__import__(module, fromlist=["_"]))
    arguments = [node.args[0], *[keyword.value for keyword in node.keywords if keyword.arg == "flags"]]
    if _method_of_re(node.func) == "compile":
        arguments += node.args[1:2]
    text, *flags = [eval(compile(ast.Expression(a), str(path), "eval"), dict(names)) for a in arguments]
    return re.compile(text, *flags)


@cache
def _asked(package: Path) -> dict[str, set[str]]:
    """By name: the methods that are called of something that is called so."""
    called = re.compile(rf"\b(\w+)\.({'|'.join(_METHODS)})\b")
    found: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        for name, method in called.findall(path.read_text("utf-8")):
            found.setdefault(name, set()).add(method)
    return found


class Attack(NamedTuple):
    """A text to be made in any size: ``unit`` is what is repeated."""

    start: str
    unit: str
    end: str
    plain: bool  # nothing but a run of one of the pattern's own characters or literals

    def text(self, pattern: re.Pattern[Any], size: int) -> Any:
        """About ``size`` characters, or octets where the pattern wants these."""
        made = self.start + self.unit * (size // len(self.unit)) + self.end
        return made.encode("utf-8", "surrogatepass") if isinstance(pattern.pattern, bytes) else made


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """What may hurt the pattern: runs of what it has, behind what it begins with, with near misses at their end."""
    return list(dict.fromkeys(islice((a for a in _attacks(pattern) if a.unit), _MOST_ATTACKS)))


def _attacks(pattern: re.Pattern[Any]) -> Iterator[Attack]:
    tree = parser.parse(pattern.pattern, pattern.flags & ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0))
    singles = list(dict.fromkeys(_characters(tree, literals=False)))
    literals = list(dict.fromkeys(text for text in _literals(tree) if text))
    repeats = list(_repeats(tree, ""))
    for unit in [*singles, *literals]:
        yield Attack("", unit, "", True)
    for start, units in repeats:
        for unit, end in product(units, ("", "\x00", "!")):
            yield Attack(start, unit, end, False)  # one start, a run, a near miss
            yield Attack("", f"{start}{unit * 1000}{end}", "", False)  # some of them
        for unit in units:
            yield Attack("", start + unit, "", False)  # many starts
            yield Attack(start * 1000, unit, "", False)
    for start, units in repeats:
        for one, other in product(units, ("a", " ", "/", "<", "1", "\n")):
            yield Attack(start, one + other, "\x00", False)
    for literal, unit in product(literals, singles):
        yield Attack("", literal + unit, "", False)
        yield Attack(literal, unit, "\x00", False)


def _characters(tree: Any, *, literals: bool = True) -> Iterator[str]:
    """Members of each class (and literal) of a parsed expression."""
    for op, argument in tree:
        if op in (sre.NOT_LITERAL, sre.IN, sre.ANY) or (op is sre.LITERAL and literals):
            yield from _members(op, argument)
        for inner in _inner(op, argument):
            yield from _characters(inner, literals=literals)


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
