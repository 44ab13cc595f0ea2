"""The page that CRAWLER_INFO_URL leads to: what the bot is, how it behaves, how to slow or block it, whom to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(slots=True, frozen=True)
class Bot:
    """What the page says, in plain values."""

    name: str  # the product token of robots.txt
    user_agent: str
    contact: str
    operator: str
    purpose: str
    addresses: Sequence[str]  # from which it asks, as text (IP addresses or networks)
    start_seconds: float  # pause before anything is known of a host
    least_seconds: float
    most_seconds: float | None
    multiplier: float  # of the mean response time; 0: the pause is fixed
    robots_hours: float
    max_bytes: int


_STYLE = """
:root { color-scheme: light dark }
body { font: 1.05rem/1.6 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font-family: ui-monospace, monospace; font-size: .95em }
pre { overflow-x: auto; padding: .8rem; border: 1px solid; border-radius: .3rem }
h1 { line-height: 1.2 } code { overflow-wrap: anywhere }
""".strip()


def bot_page(bot: Bot) -> str:
    """The whole page, self-contained, valid HTML."""
    name = escape(bot.name)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}, a web crawler</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>{name}</h1>
{_what(bot, name)}
<h2>How it behaves</h2>
{_behaviour(bot)}
<h2>How to slow it</h2>
<p>In your robots.txt, for one request in 30 seconds:</p>
<pre>User-agent: {name}
Crawl-delay: 30</pre>
<h2>How to block it</h2>
<p>In your robots.txt, for the whole site or a part of it:</p>
<pre>User-agent: {name}
Disallow: /</pre>
<p>It may take {bot.robots_hours:g} hours until it is read again.</p>
<h2>Whom to ask</h2>
{_whom(bot)}
<p>Tell us the host and about when; we have the log of every request and answer with it.</p>
</body>
</html>
"""


def _what(bot: Bot, name: str) -> str:
    addresses = "".join(f"<li><code>{escape(address)}</code></li>" for address in bot.addresses)
    where = f"<p>It asks from:</p><ul>{addresses}</ul>" if addresses else "<p>Its addresses may change.</p>"
    who = f"<p>It is run by {escape(bot.operator)}.</p>" if bot.operator else ""
    purpose = f"<p>{escape(bot.purpose)}</p>" if bot.purpose else ""
    return f"""<p>{name} is a web crawler. It follows links and keeps what it is given in standard WARC files.</p>
{purpose}
{who}
<p>It calls itself:</p>
<pre>{escape(bot.user_agent)}</pre>
{where}"""


def _whom(bot: Bot) -> str:
    if not bot.contact:
        return ""
    mail = escape(bot.contact)
    contact = f'<a href="mailto:{mail}">{mail}</a>' if "@" in bot.contact else mail
    return f"<p>Write to {contact}; a word is enough, and your site is left alone for good.</p>"


def _behaviour(bot: Bot) -> str:
    return f"""<ul>
<li>One request at a time to a host, and to an IP address.</li>
<li>{_pause(bot)}</li>
<li>It obeys robots.txt (RFC 9309) and reads it again after {bot.robots_hours:g} hours.
Without an answer to that it asks for nothing.</li>
<li><code>Crawl-delay</code> and <code>Request-rate</code> are kept in full, however long.</li>
<li>After 429 or 503 it leaves the whole host alone, for as long as <code>Retry-After</code> says.</li>
<li><code>nofollow</code> in a meta element, a link or an X-Robots-Tag header is honoured.</li>
<li>It sends no cookies, fills in no forms, and reads at most {bot.max_bytes:,} bytes of a page.</li>
</ul>"""


def _pause(bot: Bot) -> str:
    most = "" if bot.most_seconds is None else f" and at most {bot.most_seconds:g}"
    if not bot.multiplier:
        return f"{bot.least_seconds:g} seconds between an answer's end and the next request."
    return (
        f"Between an answer's end and the next request {bot.multiplier:g} times the mean time that your server took to "
        f"answer, at least {bot.least_seconds:g}{most} seconds."
    )
