"""What ``make docs`` builds: README, the pages of docs/ and their neighbours as one site, with every link checked."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

# The sources are the repository, so that a link to a file is the same here and where the repository is read.
_ROOT = Path(__file__).resolve().parents[2]
_INIT = (_ROOT / "crawlerproject" / "__init__.py").read_text()

project = "Polite Crawler"
release = re.findall(r'^__version__ = "(.+)"$', _INIT, flags=re.MULTILINE)[0]
html_title = f"{project} {release}"

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/howto/*.md"]
exclude_patterns = [".*", "build", "crawls", "crawlerproject", "tests", "benchmarks", "scripts", "samples", "deploy"]

myst_heading_anchors = 4  # the anchors that a forge makes of headings, which links in the pages use
myst_enable_extensions = ["deflist"]
suppress_warnings = ["misc.highlighting_failure"]  # examples with […] in them

html_theme = "furo"  # no file of it comes from another host
html_extra_path = ["index.html"]
html_copy_source = False
html_show_copyright = False
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

_ACCESSIBLE = {
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    'role="heading">': 'role="heading" aria-level="2">',
}


def setup(app: Sphinx) -> None:
    """What scrolls is reached by keyboard, and a heading has a level: neither Sphinx nor its theme says so."""
    app.connect("build-finished", _made_accessible)


def _made_accessible(app: Sphinx, error: Exception | None) -> None:
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        for found, said in _ACCESSIBLE.items():
            text = text.replace(found, said)
        page.write_text(text)
