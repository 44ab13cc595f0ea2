"""Decides what a URL is: the form that is fetched, the key it is known under, and its host.

Two forms of one URL (DESIGN §2). The *fetch form* is the WHATWG serialisation without fragment and
user info and nothing else: order, escapes and slashes stay, since re-ordered URLs can 404 or break
signatures. The *dedup key* is a guess at identity and is never fetched; it is the fetch form with
escapes normalised, tracking and session parameters dropped and the query pieces sorted.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import can_ada
from xxhash import xxh3_64_digest, xxh3_128_digest

from crawlerproject import native
from crawlerproject.reasons import Reason
from crawlerproject.rules.web_encodings import NEVER_WRITTEN, UTF_8, encoding_of, written

# Click and campaign identifiers: union of Firefox's strict and Nightly lists, Brave's and pywb's, plus
# gclsrc, ttclid, mc_cid and _hsmi. `ref`, `source`, `session`, `cid`, `uid`, `campaign` are absent on
# purpose: stripping them merges distinct pages.
TRACKING_NAMES = frozenset(
    {"fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "ysclid", "twclid", "ttclid"}
    | {"igshid", "mc_cid", "mc_eid", "_hsenc", "_hsmi", "mkt_tok", "wickedid", "_openstat", "__s"}
)
TRACKING_PREFIXES = ("utm_", "__hs", "oly_", "vero_")  # same lists, the entries that end in `*`

# A session name alone proves nothing; the value must look like the one its software makes.
_PHP_VALUE = re.compile(r"[0-9A-Za-z,-]{22,256}")  # PHP's session.sid_length is 22 to 256
_JAVA_VALUE = re.compile(r"[0-9A-Za-z_.!~-]{16,}")  # Tomcat 32 hex (+ .route), WebLogic and Jetty longer
_HEX_VALUE = re.compile(r"(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{16,}")  # a letter: numbers this long are record ids
_ASP_VALUE = re.compile(r"[A-Z]{24}")  # classic ASP: ASPSESSIONIDxxxxxxxx = 24 capitals
_MD5_VALUE = re.compile(r"[0-9a-f]{32}")  # a search for 32 such digits is unlikely
_ONE = re.compile("1")
_ANY_VALUE = re.compile(r".*", re.DOTALL)
_NO_VALUE = re.compile("")  # the piece between two "&&" (and a lone "=")
SESSION_SHAPES = {
    "phpsessid": _PHP_VALUE,
    "oscsid": _PHP_VALUE,  # osCommerce and Zen Cart keep PHP's own ids under their names
    "zenid": _PHP_VALUE,
    "xtcsid": _PHP_VALUE,  # xt:Commerce, of the same family
    "s": _MD5_VALUE,  # vBulletin and Invision Power Board, to visitors without cookies
    "aspxautodetectcookiesupport": _ONE,  # ASP.NET, before it turns to the ids in paths below
    "jsessionid": _JAVA_VALUE,
    "sid": _HEX_VALUE,
    "sessid": _HEX_VALUE,
    "sessionid": _HEX_VALUE,
    "session_id": _HEX_VALUE,
}
_COLDFUSION_NAMES = {"cfid": re.compile(r"[0-9]+"), "cftoken": re.compile(r"[0-9A-Fa-f-]{8,}")}
_ASCII = "".join(map(chr, range(128)))
_PATH_JAVA_SESSION = re.compile(r";jsessionid=[0-9A-Za-z_.!~-]{16,}(?=[;/?&]|$)", re.IGNORECASE)
# ASP.NET's "cookieless" sessions: S the session, X(1) that cookies were tried, A and F who the visitor is.
_PATH_ASP_SESSION = re.compile(
    r"/\((?:X\(1\))?(?:[AF]\([0-9A-Za-z_-]+\))*(?:S\([0-9a-z]{24}\))(?:[AF]\([0-9A-Za-z_-]+\))*\)(?=/)", re.IGNORECASE
)

# The escapes that are not in normal form. Group 1: unreserved characters (RFC 3986 2.3), to be decoded, but not
# after a stray "%" or "%4": that could make a new escape of the pair. Else: lower-case digits.
_ESCAPE = re.compile(
    r"(?<!%)(?<!%[0-9A-Fa-f])%(2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])"
    r"|%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])"
)

_DROPPED = dict.fromkeys(map(ord, "\t\n\r"))  # URL 4.4, basic URL parser: tabs and line ends anywhere,
_TRIMMED = "".join(map(chr, range(0x21)))  # and controls and blanks at the end
# WHATWG URL: the bytes of a special URL's query that are written as %XX.
_QUERY_BYTES = [chr(b) if 0x20 < b < 0x7F and b not in b"\"#<>'" else f"%{b:02X}" for b in range(256)]


# In a link, a host that can_ada knows under another name than the standard since revision 31 of UTS 46 (it has "ss").
_SHARP_S = re.compile("ẞ|%e1%ba%9e", re.IGNORECASE | re.ASCII)


class Address(NamedTuple):
    """One URL as the crawl knows it."""

    url: str  # the fetch form
    key: bytes  # 24 bytes: xxh3_64(host key), then xxh3_128(dedup key); pages of one host sort together
    host: str  # host key: lower-case name, ":port" only when not the scheme's default, no root dot
    scheme: str  # "http" or "https"

    @property
    def is_front(self) -> bool:
        """Whether this is the page at the top of its host, without a query."""
        return self.url == f"{self.scheme}://{self.host}/"


_HOST_DIGEST_BYTES = 8  # with which a key begins
_new = tuple.__new__


class UrlRefused(ValueError):
    """A text that is no address of ours; ``reason`` is INVALID_URL or SCHEME."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


_UNKNOWN = Address("", b"", "", "")
_resolved: dict[tuple[str | None, str], Address | None] = {}
"""What links of pages lately read mean, by what of the page counts and the link as written: sites repeat theirs.

What counts is the page's folder; for a link that begins with "/" its origin; for an absolute one nothing.
"""
_MOST_RESOLVED = 32_768  # some 400 bytes each
_sites: dict[str, tuple[str, str, bytes]] = {}
"""Of the sites of such absolute links, by their origin where it is written as it is fetched: host, scheme, digest."""
_PLAIN = re.compile(r"https?://[0-9A-Za-z][\x21-\x2e\x30-\x7e]*/")
# Paths that are joined as they stand: nothing to escape, no dot segments, nothing that a key leaves out.
_SIMPLE = re.compile(r"/?[0-9A-Za-z_~-][0-9A-Za-z_.~-]*+(?:/[0-9A-Za-z_~-][0-9A-Za-z_.~-]*+)*+/?").fullmatch
_SIMPLE_HOST = re.compile(r"(?:[0-9a-z_-]{1,63}\.){0,9}[0-9a-z_-]{1,63}(?::\d{1,5})?").fullmatch
_ABSOLUTE = ("http://", "https://")  # with the slashes: "http:page" is relative (WHATWG URL 4.4)
_SEGMENT = r"[A-Za-z0-9!$&'()*+,;=@_~-][A-Za-z0-9!$&'()*+,;=:@_~.-]*+"
# A link that no parser changes but for its fragment: a host in lower case, no dots, escapes or empty parts in its path.
_AS_WRITTEN = re.compile(
    r"((?:https?://(?:[a-z0-9-]++\.)++[a-z]{2,}+(?=/))?)(/?)"
    rf"((?:{_SEGMENT}(?:/{_SEGMENT})*+/?+)?+(?:\?[A-Za-z0-9!$&()*+,;=:@_~./?-]*+)?+)(?:#[ -~]*+)?",
    re.ASCII,
)
_REMEMBERED = 512
"""Characters: longer texts of others are not remembered, for the caches here count entries, not bytes (ours)."""


def url_in_header(value: bytes) -> str:
    """What a Location or Link header names, its octets beyond ASCII escaped as they are: browsers ask for those."""
    return value.decode("ascii") if value.isascii() else quote(value, safe=_ASCII)


class Base:
    """Resolves the links of one page; made once a page, since parsing the base is half the work."""

    __slots__ = ("_base", "_beginnings", "_encoding", "_folder", "_nothing", "_origin", "_own", "_own_digest", "url")

    def __init__(self, url: str, encoding: str = "utf-8") -> None:
        """``encoding`` is the page's, by any of its labels: a query's non-ASCII text is written in it."""
        self.url = url
        name = encoding if encoding in NEVER_WRITTEN else encoding_of(encoding) or UTF_8
        self._encoding = "" if name in NEVER_WRITTEN else name
        try:
            self._base: can_ada.URL | None = can_ada.parse(url)
            self._own: str = self._base.host
        except (ValueError, TypeError):  # a host that only ada_url takes: every join goes through it
            self._base = None
        # What results are remembered by; "": not at all, for an address that we write otherwise.
        self._folder = url.partition("?")[0].rpartition("/")[0] if _PLAIN.match(url) else ""
        self._beginnings: tuple[str, str] | None = None
        self._nothing: str | None = None
        self._origin = url[: url.find("/", 8)]
        self._own_digest = b""  # where simple paths are joined as they stand
        if "xn--" in url.lower():  # which asks for a second opinion
            self._folder = self._folder if "xn--" in self._folder.lower() else ""
            self._nothing = self._origin = self._folder
        elif self._folder and self._base is not None and "#" not in url and self._base.href == url:
            folders, own = self._folder[len(self._origin) :], self._own
            if self._origin.endswith(f"//{own}") and _SIMPLE_HOST(own) and (not folders or _SIMPLE(folders)):
                self._own_digest = _known_host(own)[1]

    def join(self, href: str) -> Address | None:
        """The address ``href`` means on this page; None when it is not one of ours."""
        if self._own_digest and _SIMPLE(href):
            url = self._origin + href if href[0] == "/" else f"{self._folder}/{href}"
            scheme = "https" if url[4] == "s" else "http"
            return _new(Address, (url, self._own_digest + xxh3_128_digest(url.encode()), self._own, scheme))
        if self._encoding and not href.isascii():
            href = encode_query(href, self._encoding)
        # "?page=2", "#top" and what browsers trim mean another page each.
        if (not href[:1].isalnum() and href[:1] != "/") or len(href) > _REMEMBERED or not self._folder:
            return self._join(href)
        of: str | None = self._folder
        if href[0] == "/":
            of = self._origin
        elif href.startswith(_ABSOLUTE):
            of = self._nothing
        key = of, href
        address = _resolved.get(key, _UNKNOWN)
        if address is not _UNKNOWN:
            return address
        address = self._join(href)
        if len(_resolved) >= _MOST_RESOLVED:
            _resolved.clear()
            _sites.clear()
        _resolved[key] = address
        if of is None and address is not None and "xn--" not in address.host:
            origin = f"{address.scheme}://{address.host}"
            if href.startswith(f"{origin}/"):
                _sites[origin] = address.host, address.scheme, address.key[:_HOST_DIGEST_BYTES]
        return address

    def addresses(self, targets: list[str], own_key: bytes) -> list[Address]:
        """What links mean, in the order in which they are given: each page once, the page itself left out.

        ``targets`` are as written on the page, ``own_key`` is the page's; one link of another page costs 0.4 µs
        natively where it is simple, and 3 µs here.
        """
        join, page = self.join, native.reader
        if page is not None and self._own_digest:
            scheme = "https" if self._origin[4] == "s" else "http"
            of = self._origin, self._folder, self._own, scheme, self._own_digest, _shapes, _sites
            return page.addresses(targets, join, xxh3_128_digest, Address, *of, own_key)
        addresses: dict[bytes, Address] = {}
        for target in targets:
            address = join(target)
            if address is not None:
                addresses.setdefault(address.key, address)
        addresses.pop(own_key, None)
        return list(addresses.values())

    def target(self, href: str) -> str | None:
        """The URL of ``join``, at a third of its cost for most links, which are what they will be."""
        found = _AS_WRITTEN.fullmatch(href)
        if found is not None:
            host, slash, rest = found.groups()
            if host and self._base is not None and "xn--" not in host:
                return host + slash + rest
            if not host and (slash or (rest[:1] not in ("", "?") and ":" not in rest)):
                origin, folder = self.beginnings()
                if origin:
                    return (origin if slash else folder) + rest
        address = self.join(href)
        return None if address is None else address.url

    def beginnings(self) -> tuple[str, str]:
        """What "/" and "." mean on this page; empty where the parser is to be asked."""
        if self._beginnings is None and self._own_digest:
            self._beginnings = f"{self._origin}/", f"{self._folder}/"
        elif self._beginnings is None:
            ends = (self._join("/"), self._join(".")) if self._base is not None else (None, None)
            self._beginnings = "" if ends[0] is None else ends[0].url, "" if ends[1] is None else ends[1].url
        return self._beginnings

    def own_key(self) -> bytes:
        """The key of the page itself; empty if we write its address otherwise."""
        if self._own_digest and _SIMPLE(self.url, len(self._origin)):
            return self._own_digest + xxh3_128_digest(self.url.encode())
        try:
            if self._base is not None:
                return _address(self._base.href, self._own, self.url, "").key
        except ValueError:  # a second opinion is needed, or it is refused
            pass
        try:
            return parse(self.url).key
        except UrlRefused:
            return b""

    def _join(self, href: str) -> Address | None:
        if self._base is not None:
            try:
                parsed = self._base + href
                return _address(parsed.href, parsed.host, href, self._own)
            except UrlRefused:
                return None
            except (ValueError, TypeError):  # TypeError: a lone surrogate
                pass
        try:
            return _second_opinion(href, self.url)
        except UrlRefused:
            return None


def parse(url: str) -> Address:
    """The address of an absolute URL; raises UrlRefused and nothing else."""
    try:
        parsed = can_ada.parse(url)
        return _address(parsed.href, parsed.host, url, "")
    except UrlRefused:
        raise
    except (ValueError, TypeError):
        return _second_opinion(url, None)


def origin(url: str) -> str:
    """``scheme://host[:port]``, the key of a robots.txt; raises UrlRefused."""
    address = parse(url)
    return f"{address.scheme}://{address.host}"


def host_key(url: str) -> str:
    """Host key of an absolute URL, the same as ``parse(url).host``; "" when it has no host or cannot be read."""
    try:
        return parse(url).host
    except UrlRefused as refused:
        if refused.reason is not Reason.SCHEME:
            return ""
    try:  # what other spiders may request over something else than http: name and port as written
        parts = urlsplit(url)
        name, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return ""
    if ":" in name:
        name = f"[{name}]"
    return name if port is None else f"{name}:{port}"


def host_of_page(url: str) -> str:
    """``host_key`` of an address that ``parse`` wrote, without parsing it again where its host was met before."""
    end = url.find("/", len("https://"))
    return _host_of_front(url[:end]) if end > 0 else host_key(url)


@lru_cache(maxsize=65_536)  # as ``host_name``
def _host_of_front(front: str) -> str:
    return host_key(front + "/")


@lru_cache(maxsize=65_536)  # some links of every page, and each turn, ask for the same few
def host_name(key: str) -> str:
    """Host name of a host key: the port, if any, taken off; brackets of an IPv6 address stay."""
    if ":" not in key or key.endswith("]"):
        return key
    return key.rpartition(":")[0]


@lru_cache(maxsize=65_536)  # a crawl meets the same few keys with a port again and again
def port_of(host: str) -> int:
    """The port in a host key; 0 when it is the scheme's default."""
    name = host_name(host)
    return int(host[len(name) + 1 :]) if len(name) < len(host) else 0


def key_of(name: str, port: int) -> str:
    """The host key of a name at a port; 0 is the scheme's default."""
    return f"{name}:{port}" if port else name


def encode_query(href: str, encoding: str) -> str:
    """``href`` with its query in ``encoding`` (the standard's name) if it has more than ASCII: URL 4.4, query state."""
    head, hash_mark, fragment = href.partition("#")
    path, question_mark, query = head.partition("?")
    if not question_mark or query.isascii():
        return href
    query = query.translate(_DROPPED)
    octets = written(query if hash_mark else query.rstrip(_TRIMMED), encoding)
    return path + question_mark + "".join([_QUERY_BYTES[octet] for octet in octets]) + hash_mark + fragment


def _second_opinion(url: str, base: str | None) -> Address:
    # can_ada has an older Ada, of Unicode 15.0: it refuses hosts that the standard allows, and reads others otherwise.
    # ada_url is newer but six times slower: it is asked where a host may be none of plain ASCII.
    if url.isascii() and "%" not in url and "xn--" not in (url if base is None else base + url).lower():
        raise UrlRefused(Reason.INVALID_URL)
    import ada_url  # by crawls that meet such a host only

    try:
        parsed = ada_url.URL(url, base=base)
        return _address(parsed.href, parsed.host, "", "")
    except UrlRefused:
        raise
    except (ValueError, TypeError):
        raise UrlRefused(Reason.INVALID_URL) from None


def _address(href: str, host: str, written: str, own: str) -> Address:
    """The address of can_ada's serialisation of what is ``written`` on a page of host ``own``.

    Raises ValueError where a second opinion is needed.
    """
    if href.startswith("https://"):
        scheme = "https"
    elif href.startswith("http://"):
        scheme = "http"
    else:
        raise UrlRefused(Reason.SCHEME)
    if "#" in href:
        href = href.partition("#")[0]
    if "@" in href:
        # The serialisation escapes "@" within user info, so the last one before the path ends it.
        start = len(scheme) + 3
        end = href.index("/", start)
        href = href[:start] + href[start:end].rpartition("@")[2] + href[end:]
    known_host, host_digest, doubt = _known_host(host) if len(host) <= _REMEMBERED else _known_host.__wrapped__(host)
    if doubt and not (written.isascii() and "%" not in written) and (host != own or _SHARP_S.search(written)):
        raise ValueError("a host that is not of plain ASCII")
    text = href if known_host == host else href.replace(host, known_host, 1)
    if "?" in text or "%" in text or ";" in text or "/(" in text:
        text = _key_text(text)
    # What Address(...) does, at a third of the cost: it is made for every link of every page.
    return _new(Address, (href, host_digest + xxh3_128_digest(text.encode()), known_host, scheme))


@lru_cache(maxsize=65_536)  # a crawl is in touch with some 10,000 hosts at once
def _known_host(host: str) -> tuple[str, bytes, bool]:
    """The host key, its digest, and whether can_ada may have made it of a host that means another."""
    # "example.org." is the same server as "example.org": one pace, one queue, one NeverCrawl entry.
    name, colon, port = host.partition(":") if not host.startswith("[") else (host, "", "")
    if name.endswith("."):
        name = name[:-1]
    if not name or name.startswith(".") or ".." in name or name.endswith("."):
        raise UrlRefused(Reason.INVALID_URL)  # an empty label: no such name can be asked of DNS
    known = name + colon + port
    return known, xxh3_64_digest(known.encode()), "xn--" in known or "ss" in known


def _key_text(text: str) -> str:
    if "%" in text:
        text = _ESCAPE.sub(_plain_escape, text)
    if ";" in text:
        text = _PATH_JAVA_SESSION.sub("", text)
    if "/(" in text:
        text = _PATH_ASP_SESSION.sub("", text)
    path, _, query = text.partition("?")
    if not query:
        return path
    pieces = []
    for piece in query.split("&"):
        name, _, value = piece.partition("=")
        shape = _noise_shape(name) if len(name) <= _REMEMBERED else None
        if shape is None or shape.fullmatch(value) is None:
            pieces.append(piece)
    if "cftoken" in query.lower():
        # CFID alone is a plain number and may name a page; with a CFTOKEN beside it, it is a session.
        found = {}
        for piece in pieces:
            name, _, value = piece.partition("=")
            if (shape := _COLDFUSION_NAMES.get(name.lower())) is not None and shape.fullmatch(value):
                found[piece] = name.lower()
        if len({*found.values()}) == len(_COLDFUSION_NAMES):
            pieces = [piece for piece in pieces if piece not in found]
    if not pieces:
        return path
    pieces.sort()
    return path + "?" + "&".join(pieces)


def _plain_escape(match: re.Match[str]) -> str:
    digits = match[1]
    return match[0].upper() if digits is None else chr(int(digits, 16))


_shapes: dict[str, re.Pattern[str] | None] = {}
"""By names of parameters as they stand in links, which repeat from link to link: ``_noise_shape``."""
_MOST_SHAPES = 16_384


def _noise_shape(name: str) -> re.Pattern[str] | None:
    """The shape of value that makes a parameter noise; None for a parameter that means something."""
    shape = _shapes.get(name, _NO_VALUE)
    if shape is not _NO_VALUE:
        return shape
    shape = _found_shape(name.lower())
    if name.lower() not in _COLDFUSION_NAMES:  # which mean something, or not, by what is beside them
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        _shapes[name] = shape
    return shape


def _found_shape(name: str) -> re.Pattern[str] | None:
    if name in TRACKING_NAMES or name.startswith(TRACKING_PREFIXES):
        return _ANY_VALUE
    if not name:
        return _NO_VALUE
    return _ASP_VALUE if name.startswith("aspsessionid") else SESSION_SHAPES.get(name)
