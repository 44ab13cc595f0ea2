"""Decides what a page's browser may do: which of its sub-requests are sent, and whether it runs in a sandbox.

Scripts and the data they request are sent, few of them and none to trackers; with which header fields, and which later
requests of other pages their answers serve, is decided here too. Chromium's own sandbox is used wherever the system
lets it: Playwright gives Chromium ``--no-sandbox`` unless it is asked for the sandbox, and whether the system allows
one, only Chromium finds out, as it starts: by user namespaces, or by a helper program that is root's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Resource types as Playwright names them. A page's words and links need nothing else; frames are links of the page,
# fetched as pages of their own.
WANTED_KINDS = frozenset({"script", "xhr", "fetch"})
# How long an answer serves other pages (ours). A new version of an application is on the way for a day at most, data
# for an hour; what failed may be there in a few minutes.
_SCRIPT_SECONDS = 86_400.0
_DATA_SECONDS = 3_600.0
_FAILURE_SECONDS = 300.0
# Client errors that are about the moment and not about the URL (RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4).
_PASSING = frozenset({408, 425, 429})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_SUBREQUESTS = 40
"""Scripts and data files that one page may load, of all hosts together (RENDER_MAX_SUBREQUESTS, ours)."""
AUTO, REQUIRED = "auto", "required"
"""What RENDER_SANDBOX may be."""

# Playwright's words over Chromium's, and Chromium's own (content/browser/zygote_host/zygote_host_impl_linux.cc).
_REFUSED = ("sandboxing failed", "No usable sandbox", "setuid sandbox is not running as root")
_ROOT = "it runs as root, and Chromium then refuses its sandbox; start crawls that render as a user of their own"
_SYSTEM = (
    "the system refuses this user what it is made of; allow user namespaces (user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone, AppArmor, a container's seccomp profile)"
)
# Registered domains that only watch or advertise: a page says nothing less without their scripts. Our own list, written
# for this project in November 2026 from the public documentation of the services named; it is under the project's
# licence and in the public domain beyond it. Whole domains only, and only such as serve nothing that a page is built
# of: a maintained list of 70,000 rules would block more, at the price of its licence.
TRACKERS = frozenset(
    """
    2mdn.net 33across.com acuityplatform.com addthis.com addtoany.com adform.net adition.com adjust.com
    admixer.net adnxs.com adroll.com adsafeprotected.com adsrvr.org adsymptotic.com adtech.de advertising.com
    agkn.com alexametrics.com amazon-adsystem.com amplitude.com app-measurement.com appdynamics.com appsflyer.com
    at-o.net atdmt.com bidswitch.net bing-ads.com bizible.com bkrtx.com bluekai.com bounceexchange.com branch.io
    braze.com bugsnag.com casalemedia.com chartbeat.com chartbeat.net clarity.ms clickcease.com clicktale.net
    cloudflareinsights.com comscore.com connatix.com contentsquare.net convertexperiments.com cookiebot.com
    cookielaw.org crazyegg.com criteo.com criteo.net crwdcntrl.net cxense.com datadoghq-browser-agent.com
    demdex.net disqusads.com dotmetrics.net doubleclick.net doubleverify.com drift.com driftt.com dynamicyield.com
    ensighten.com everesttech.net evidon.com exelator.com eyeota.net fastclick.net flashtalking.com
    freshmarketer.com fullstory.com go-mpulse.net google-analytics.com googleadservices.com googlesyndication.com
    googletagmanager.com googletagservices.com heap.io heapanalytics.com histats.com hotjar.com hotjar.io
    hs-analytics.net hs-banner.com hscollectedforms.net hubspot-analytics.com id5-sync.com imrworldwide.com
    indexww.com inspectlet.com intellimize.co intercom.io ioam.de iubenda.com kampyle.com keen.io kissmetrics.com
    kissmetrics.io klaviyo-analytics.com krxd.net lijit.com liveintent.com liveramp.com livechatinc.com
    logrocket.com logrocket.io lr-ingest.io luckyorange.com marfeel.com marketo.net mathtag.com matomo.cloud
    media.net mediamath.com mgid.com mixpanel.com moatads.com mouseflow.com mparticle.com mxpnl.com narrative.io
    newrelic.com nr-data.net nuggad.net omniture.com omtrdc.net onetrust.com onesignal.com openx.net
    optimizely-logx.com outbrain.com owneriq.net parsely.com pardot.com perfops.net permutive.com piano.io
    pingdom.net piwik.pro plausible.io posthog.com privacy-center.org privacy-mgmt.com pubmatic.com pushcrew.com
    pushwoosh.com qualtrics-intercept.com quantcast.com quantserve.com quantcount.com quora-ads.com rfihub.com
    richrelevance.com rlcdn.com rollbar.com rubiconproject.com scorecardresearch.com segment.com segment.io
    sentry-cdn.com sharethis.com sharethrough.com sift.com simpli.fi siteimproveanalytics.com skimresources.com
    smartadserver.com smartlook.com snowplowanalytics.com sourcepoint.mgr.consensu.org spotxchange.com
    statcounter.com stickyadstv.com taboola.com tapad.com teads.tv tealiumiq.com tiqcdn.com trustarc.com
    tvsquared.com turn.com usabilla.com usercentrics.eu userzoom.com vwo.com visualwebsiteoptimizer.com
    webtrends.com webtrends-optimize.com wt-safetag.com xiti.com yieldlab.net yieldmo.com zemanta.com zedo.com
    zopim.com
    """.split()  # noqa: SIM905 - a list literal of this would be ten times as long
)


class Reuse(NamedTuple):
    """Which later requests for its URL an answer serves."""

    seconds: float  # from its arrival
    by_origin: bool  # those with the same Origin, or without one if it had none
    own_site: bool  # those of pages of the same site

    def and_of(self, other: Reuse) -> Reuse:
        """What both answers serve, of which one redirected to the other."""
        return Reuse(
            min(self.seconds, other.seconds), self.by_origin or other.by_origin, self.own_site or other.own_site
        )


def subresource_refusal(kind: str, method: str, host: str, *, asked: int, max_asked: int) -> str:
    """Why a sub-request is not sent, one word; "" when it may be.

    ``host`` is its host name, ``asked`` how many this page has sent already.
    """
    if kind not in WANTED_KINDS:
        return kind or "other"
    if method != "GET":
        return "method"  # whatever changes something on the server is not a crawler's to send
    if is_tracker(host):
        return "tracker"
    return "too-many" if asked >= max_asked else ""


def sent_fields(asked: Mapping[str, str]) -> dict[str, str]:
    """The header fields of a sub-request; ``asked`` (lower-case names) are those that the browser would send.

    Two pages' requests for one URL differ in Origin alone, so no other field that a ``Vary`` names can matter:
    ``reuse`` relies on that. No cookie is sent, and no Referer, which would make each site's request its own.
    """
    return {"Accept": "*/*"} | ({"Origin": asked["origin"]} if "origin" in asked else {})


def reuse(status: int, headers: Mapping[str, str], kind: str) -> Reuse | None:
    """What an answer to a sub-request is good for beyond the page that asked; None: nothing.

    ``headers`` have lower-case names. RFC 9111 4.1 decides by the request's fields that ``Vary`` names. Browsers keep
    a cache for each site besides, so that a site cannot find out where its visitor was; a crawler's requests are the
    same bytes for every site, and a script that thousands of sites load from one host is why answers are shared.
    What a server says is for one client is kept within the site whose page received it, and so is a failure.
    """
    vary = [name.strip().lower() for name in headers.get("vary", "").split(",")]
    if "*" in vary:
        return None
    # A server that names one origin, or none, may have looked at Origin without a word of it in Vary.
    by_origin = "origin" in vary or headers.get("access-control-allow-origin", "").strip() != "*"
    script = kind == "script"
    if 400 <= status < 500 and status not in _PASSING:
        return Reuse(_FAILURE_SECONDS, by_origin=True, own_site=True)
    if status != 200 and status not in REDIRECTS:
        return None
    if script and status == 200 and "html" in headers.get("content-type", "").lower():  # an error's page, or a wall
        return Reuse(_FAILURE_SECONDS, by_origin=True, own_site=True)
    policy = headers.get("cache-control", "").lower()
    private = "no-store" in policy or "private" in policy
    if private and not script:
        return None
    return Reuse(_SCRIPT_SECONDS if script else _DATA_SECONDS, by_origin, own_site=private)


def is_tracker(host: str) -> bool:
    """Whether a host name (without port) is a tracker's or below one."""
    parts = host.lower().rstrip(".").split(".")
    return any(".".join(parts[start:]) in TRACKERS for start in range(len(parts) - 1))


def hopeless(*, is_root: bool) -> str:
    """Why Chromium need not be tried with its sandbox; "" if it should be."""
    return _ROOT if is_root else ""


def refused_by(last_words: str) -> str:
    """Why there is no sandbox, if the words of a browser that did not start are about that; else ""."""
    return _SYSTEM if any(words in last_words for words in _REFUSED) else ""
