"""The sort-friendly key of a URL, ``com,example)/path``, by which CDXJ and Common Crawl's index are sorted.

It is what the package ``surt`` says. Nine of ten addresses have nothing in them that its rules change but the case, the
host's order, a trailing slash and the order of the query's pieces: theirs is written here, in a fiftieth of the time.
"""

from __future__ import annotations

import re

# No "%", no blank, nothing that is escaped; a name that cannot be read as a number; no empty segment and none that
# begins with a dot. A port is written out where it is not the scheme's default, which ``parse`` has left out.
_PLAIN = re.compile(
    r"https?://(?:www[0-9]*\.)?((?:[a-z0-9_-]+\.)*[a-z_-][a-z0-9_-]*)(:[1-9][0-9]{2,3}|:[1-5][0-9]{4})?"
    r"((?:/(?=[^./]|$)[A-Za-z0-9!$&'()*+,;=:@_~.-]*)+)"
    r"(?:\?([A-Za-z0-9!$&'()*+,;=:@_~./?-]*))?",
    re.ASCII,
)
_DEFAULT_PORTS = frozenset({":443"})  # of either scheme, 80 has too few digits: the package looks which one it is
# The package takes sessions out of paths (ASP.NET's) and queries (jsessionid, phpsessid, sid, aspsessionid, cfid).
_SESSION_IN_PATH = ".aspx"
_SESSION_IN_QUERY = re.compile(r"sid|session|cfid")


def surt_key(url: str) -> str:
    """The key of a URL; the URL itself where the package gives up. Without blanks and line breaks."""
    key = _plain_key(url)
    return _library_key(url) if key is None else key


def _plain_key(url: str) -> str | None:
    """The key of a URL that needs no more than lower case and another order; None for all others."""
    found = _PLAIN.fullmatch(url)
    if found is None:
        return None
    host, port, path, query = found.groups("")
    path = path.lower()
    if port in _DEFAULT_PORTS or _SESSION_IN_PATH in path:
        return None
    if path.endswith("/") and len(path) > 1:
        path = path[:-1]
    name = ",".join(host.split(".")[::-1])
    if not query:
        return f"{name}{port}){path}"
    query = query.lower()
    if _SESSION_IN_QUERY.search(query):
        return None
    if "&" in query and len(query) > 1:
        query = "&".join(["=".join(piece) for piece in sorted([piece.split("=", 1) for piece in query.split("&")])])
    return f"{name}{port}){path}?{query}"


def _library_key(url: str) -> str:
    from surt import surt  # and with it requests: not before an odd URL is written to an index or looked for

    try:
        key: str = surt(url)
    except Exception:  # the library raises many things on odd hosts; a line is still due
        key = url
    return key.replace(" ", "%20").replace("\n", "%0A")
