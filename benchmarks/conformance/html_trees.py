"""html5lib's tree construction tests against the parser of the page reader: elements, attributes, texts, comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.conformance.suite import Case, Suite, unpacked

# What selectolax shows no part of: namespaces of names, and what the document holds beside its root.
_FOREIGN = re.compile(r"^(\| +<)(?:svg|math) ")
_FOREIGN_ATTRIBUTE = re.compile(r"^(\| +)(xlink|xml|xmlns) ")
_COMMENT = re.compile(r"(?s)(?<=[| ])<!--\s*(.*?)\s*-->$")
# Other documents than a page is: parts of one, ones with scripts run, and templates, whose contents are a tree apart.
_LEFT_OUT = re.compile(r"\n#document-fragment\n|\n#script-on\n|\n\| +content(?:\n|$)")


def _written(node: LexborNode, depth: int) -> Iterator[str]:
    """As html5lib writes a tree: a line for each part, two blanks for each level."""
    indent = "| " + "  " * depth
    if node.tag == "-text":
        yield f'{indent}"{node.text_content}"'
    elif node.tag == "-comment":
        yield f"{indent}<!-- {(node.comment_content or '').strip()} -->"  # which selectolax trims
    else:
        yield f"{indent}<{node.tag}>"
        for name, value in sorted(node.attributes.items()):
            yield f'{indent}  {name}="{value or ""}"'
        for child in node.iter(include_text=True, skip_empty=False):
            yield from _written(child, depth + 1)


def _expected(line: str) -> str:
    return _COMMENT.sub(r"<!-- \1 -->", _FOREIGN_ATTRIBUTE.sub(r"\1\2:", _FOREIGN.sub(r"\1", line)))


def _trees(sources: Path) -> Iterator[Case]:
    folder = unpacked(sources, "html5lib") / "html5lib/tests/testdata/tree-construction"
    for path in sorted(folder.glob("*.dat")):
        for number, test in enumerate(re.split(r"(?:^|\n\n)#data\n", path.read_bytes().decode())[1:], 1):
            if _LEFT_OUT.search(test) is not None or "\n#document\n" not in test:
                continue
            html = re.split(r"\n#errors\n|\n#new-errors\n", test)[0] if not test.startswith("#errors") else ""
            expected = test.partition("\n#document\n")[2].rstrip("\n")
            lines = re.split(r"\n(?=\| )", expected)
            root = next((at for at, line in enumerate(lines) if line == "| <html>"), None)
            if root is None:
                continue
            end = next((at for at in range(root + 1, len(lines)) if not lines[at].startswith("|   ")), len(lines))
            theirs = [_expected(line) for line in lines[root:end]]
            parsed = LexborHTMLParser(html)
            ours = list(_written(parsed.root, 0)) if parsed.root is not None else []
            yield Case(f"{path.stem}/{number}{', select' * ('<select' in html)}", ours, theirs)


SUITES = (
    Suite(
        "html5lib trees",
        "html5lib 1.1, tree-construction",
        _trees,
        {
            "*, select": "since 2025 a select holds other elements (HTML 13.2.6.4.7); the tests are of 2020",
        },
    ),
)
