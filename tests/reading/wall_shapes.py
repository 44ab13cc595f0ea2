"""Answers by which anti-bot walls are told from pages: ordinary ones that have a vendor's marks, and walls.

Each is written here, as short as its shape allows; the last field says where the shape is from: the vendor's
documentation, an answer that others recorded, or a habit of the web. "reported": block pages that users of WhatWaf
sent in. "kept": answers that crawlers keep among their tests. "ours": a page that we thought of.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from scrapy.http import HtmlResponse

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.passage import Lease
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.page_reader import PageReader, Unmarked
from crawlerproject.stores.protocols import QueuedPage


class Shape(NamedTuple):
    """One answer."""

    vendor: str
    name: str
    status: int
    body: bytes
    source: str
    headers: dict[str, str] = {}
    path: str = "/page"


_WORDS = ("harbour", "lies", "quiet", "when", "rain", "comes", "over", "hills", "and", "boats", "wait", "for", "light")


def page(words: int, head: str = "", body: str = "", title: str = "Harbour news", links: int = 2) -> bytes:
    """An ordinary page of so many words."""
    text = " ".join(f"{_WORDS[at % len(_WORDS)]}{at // len(_WORDS) or ''}" for at in range(words))
    listed = "".join(f"<a href='/more/{at}'>more</a> " for at in range(links))
    start = f"<!doctype html><html><head><title>{title}</title>{head}</head><body>"
    return f"{start}<p>{text}</p>{listed}{body}</body></html>".encode()


def bare(body: str, head: str = "") -> bytes:
    """A page of nothing else."""
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>".encode()


JSD = (
    "<script>(function(){function c(){var b=a.contentDocument;if(b){var d=b.createElement('script');"
    "d.innerHTML=\"window.__CF$cv$params={r:'8f1a2b',t:'MTcy'};var a=document.createElement('script');"
    "a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js';document.getElementsByTagName('head')[0].appendChild(a);\";"
    "b.getElementsByTagName('head')[0].appendChild(d)}}var a=document.createElement('iframe');c()})();</script>"
)
OLD_JSD = "<script src='/cdn-cgi/challenge-platform/h/b/scripts/alpha/invisible.js?ts=1660000000'></script>"
TURNSTILE = (
    "<script src='https://challenges.cloudflare.com/turnstile/v0/api.js' async defer></script>"
    "<form method=post><input name=user><div class='cf-turnstile' data-sitekey='0x4AAA'></div></form>"
)
INCAPSULA = '<script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script>'
DATADOME_TAG = "<script>window.ddjskey='ABC';</script><script async src='https://js.datadome.co/tags.js'></script>"
AWS_SDK = "<script src='https://0a1b2c.edge.sdk.awswaf.com/0a1b2c/d3/challenge.js' defer></script>"
PX = "<script>window._pxAppId='PXabc123';var s=document.createElement('script');s.src='/abc123/init.js';</script>"
PIXEL = "<script src='/akam/13/1f2e3d4c' defer></script><noscript><img src='/akam/13/pixel_1f2e3d4c?a=dD0'></noscript>"
KASADA = "<script src='/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39-8ed7-437e-a3be-862e0f06eea3/p.js' async></script>"
TSPD = "<script type='text/javascript' src='/TSPD/08f1a2b3c4?type=10'></script>"
BOBCMN = '<APM_DO_NOT_TOUCH><script>(function(){window["bobcmn"] = "1011/TSPD/3";})();</script></APM_DO_NOT_TOUCH>'
RECAPTCHA = "<script src='https://www.google.com/recaptcha/api.js'></script><form class='g-recaptcha'></form>"
HCAPTCHA = "<script src='https://js.hcaptcha.com/1/api.js' async></script><form><div class='h-captcha'></div></form>"
GEETEST = (
    "<script src='https://static.geetest.com/static/js/gt.0.5.0.js'></script><script>initGeetest({gt:'a'},f)</script>"
)
CHL = (
    "<script>(function(){window._cf_chl_opt={cvId:'3',cZone:'a.test',cType:'managed',cRay:'8f1a2b'};"
    "var a=document.createElement('script');a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=8f1a2b';"
    "document.getElementsByTagName('head')[0].appendChild(a)}());</script>"
)
ECHO = "checking your browser before accessing"
SAYS_CHL = "window._cf_chl_opt /cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"
FREE = "Cloudflare docs, JavaScript Detections: in every HTML page of the free plan"

ORDINARY = [
    Shape("cloudflare", "JavaScript detections, 100 words", 200, page(100, body=JSD), FREE),
    Shape("cloudflare", "JavaScript detections, 60 words", 200, page(60, body=JSD), FREE),
    Shape("cloudflare", "JavaScript detections, 5 words, no link", 200, page(5, body=JSD, links=0), FREE),
    Shape("cloudflare", "JavaScript detections, 600 words", 200, page(600, body=JSD, links=30), FREE),
    Shape("cloudflare", "detections of 2022", 200, page(80, OLD_JSD), "kept; the script's name until 2023"),
    Shape("cloudflare", "the application's own 403 with detections of 2022", 403, page(30, OLD_JSD), "ours"),
    Shape("cloudflare", "Turnstile as a browser leaves it", 200,
          page(20, body="<iframe src='https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2'>"),
          "Cloudflare docs, Turnstile"),
    Shape("cloudflare", "a missing page with detections", 404, page(20, body=JSD), FREE),
    Shape("cloudflare", "the application's own 403 with detections", 403, page(30, body=JSD), FREE),
    Shape("cloudflare", "an application's 401 with detections", 401, page(30, body=JSD), FREE),
    Shape("cloudflare", "a shop in maintenance with detections", 503, page(30, body=JSD), FREE),
    Shape("cloudflare", "Turnstile in a login form", 200, page(30, body=TURNSTILE), "Cloudflare docs, Turnstile"),
    Shape("cloudflare", "a login form that refuses", 403, page(30, body=TURNSTILE), "Cloudflare docs, Turnstile"),
    Shape("cloudflare", "too many tries at a login", 429, page(20, body=TURNSTILE), "Cloudflare docs, Turnstile"),
    Shape("cloudflare", "its cookies", 200, page(40), "Cloudflare docs, Cookies", {"Set-Cookie": "__cf_bm=a; path=/"}),
    Shape("cloudflare", "addresses hidden from collectors", 200,
          page(50, "<script src='/cdn-cgi/scripts/5c5dd728/cloudflare-static/email-decode.min.js'></script>"),
          "Cloudflare docs, Email Address Obfuscation"),
    Shape("cloudflare", "the origin is down", 522, page(60, body='<div id="cf-error-details">Error 522</div>', links=1),
          "reported: Cloudflare's 5xx pages"),
    Shape("cloudflare", "rate limited", 429, page(40, body='<div id="cf-error-details">Error 1015</div>', links=1),
          "Cloudflare docs, Error 1015: it rests by its status"),
    Shape("cloudflare", "an article about its challenges", 200, page(500, body=f"<pre>{SAYS_CHL}</pre>", links=20),
          "ours"),
    Shape("cloudflare", "a note that quotes a challenge", 200, page(60, body=f"<pre>{SAYS_CHL}</pre>"), "ours"),
    Shape("cloudflare", "a search that puts the query into its state", 200,
          page(10, body=f"<script>window.state={{q:'{SAYS_CHL}'}}</script>"), "ours",
          path="/search?q=" + SAYS_CHL.replace(" ", "+").replace("/", "%2F")),
    Shape("cloudflare", "403 that names what was asked for", 403, bare(f"<h1>Forbidden</h1>You cannot have {SAYS_CHL}"),
          "ours", path="/" + SAYS_CHL.replace(" ", "%20")),
    Shape("cloudflare", "a waiting room", 200, page(40, "<meta http-equiv=refresh content=20>", title="Waiting Room"),
          "Cloudflare docs, Waiting Room: a queue, no proof"),
    Shape("imperva", "its script, 100 words", 200, page(100, INCAPSULA), "reported; kept: on passed pages too"),
    Shape("imperva", "its script, 12 words", 200, page(12, INCAPSULA), "reported; kept: on passed pages too"),
    Shape("imperva", "a missing page with its script", 404, page(12, INCAPSULA), "ours"),
    Shape("imperva", "the application's own 403 with its script", 403, page(12, INCAPSULA), "ours"),
    Shape("imperva", "its headers and cookies", 200, page(40), "reported",
          {"X-Iinfo": "13-2338 NNNN RT(1)", "X-Cdn": "Imperva", "Set-Cookie": "incap_ses_50_1=a; path=/"}),
    Shape("datadome", "its header, 500 words", 200, page(500, links=30), "kept", {"X-DataDome": "protected"}),
    Shape("datadome", "its header and tag, 40 words", 200, page(40, DATADOME_TAG), "DataDome docs, JavaScript tag",
          {"X-DataDome": "protected", "Set-Cookie": "datadome=abc; Path=/"}),
    Shape("datadome", "a missing page", 404, page(10), "kept", {"X-DataDome": "protected"}),
    Shape("datadome", "the application's own 403", 403, page(10, DATADOME_TAG), "ours", {"X-DataDome": "protected"}),
    Shape("datadome", "a password is needed", 401, page(10), "ours", {"X-DataDome": "protected"}),
    Shape("aws waf", "the client's part", 200, page(40, AWS_SDK), "AWS docs, client application integration"),
    Shape("aws waf", "the application's own 405", 405, page(20, AWS_SDK), "AWS docs, client application integration"),
    Shape("aws waf", "a job was accepted", 202, page(20, AWS_SDK), "ours"),
    Shape("aws waf", "a private object behind CloudFront", 403,
          bare("<h1>403 ERROR</h1><h2>The request could not be satisfied.</h2><hr>Bad request."
               "<pre>Generated by cloudfront (CloudFront)</pre>"), "AWS docs, HTTP 403 of CloudFront"),
    Shape("perimeterx", "its snippet", 200, page(40, PX), "kept: on passed pages too", {"Set-Cookie": "_pxhd=a"}),
    Shape("perimeterx", "the application's own 403 with its snippet", 403, page(20, PX), "ours"),
    Shape("akamai", "its pixel", 200, page(40, body=PIXEL), "kept: on passed pages too"),
    Shape("akamai", "its cookies and sensor", 200, page(40, "<script>bmak.form_submit()</script>"), "kept",
          {"Set-Cookie": "_abck=a~-1~; path=/"}),
    Shape("akamai", "the application's own 403 with its pixel", 403, page(20, body=PIXEL), "ours"),
    Shape("sucuri", "its headers", 200, page(40), "kept", {"X-Sucuri-Id": "12005", "Server": "Sucuri/Cloudproxy"}),
    Shape("sucuri", "a badge", 200, page(10, body="<a href='https://sitecheck.sucuri.net/'>Scanned by Sucuri</a>"),
          "kept"),
    Shape("ddos-guard", "its script", 200, page(40, "<script src='https://check.ddos-guard.net/check.js'></script>"),
          "kept: on passed pages too", {"Server": "ddos-guard"}),
    Shape("geetest", "a login form", 200, page(20, body=GEETEST), "GeeTest's demo pages"),
    Shape("geetest", "a login form that refuses", 403, page(20, body=GEETEST), "ours"),
    Shape("kasada", "its script", 200, page(40, KASADA), "kept: on passed pages too", {"X-Kpsdk-Ct": "01abc"}),
    Shape("kasada", "too many requests, by the application", 429, page(10, KASADA), "ours", {"X-Kpsdk-Ct": "01abc"}),
    Shape("vercel", "BotID", 200, page(40, KASADA.replace("/p.js", "/a-4-a/c.js")), "Vercel docs, BotID"),
    Shape("vercel", "one folder denied by a rule", 403, bare("Forbidden"), "kept: /wp-content of a site that has none",
          {"X-Vercel-Mitigated": "deny"}),
    Shape("vercel", "a missing page", 404, bare("The page could not be found NOT_FOUND"), "Vercel docs, NOT_FOUND",
          {"X-Vercel-Error": "NOT_FOUND"}),
    Shape("fastly", "its script", 200, page(40, "<script src='/_fs-ch-1T1wmsGaOgGaSxcX/script.js'></script>"), "kept"),
    Shape("fastly", "Varnish has no backend", 503, bare("<h1>Error 503</h1><p>Guru Meditation:</p>"), "Varnish's page"),
    Shape("f5", "its script", 200, page(40, TSPD), "F5 docs, proactive bot defense"),
    Shape("f5", "its script, inline", 200, page(20, BOBCMN), "kept"),
    Shape("f5", "a question about its page", 200,
          page(50, body="<p>What is Request Rejected? The requested URL was rejected. Your support ID is: 12</p>"),
          "ours"),
    Shape("radware", "its script", 200,
          page(40, "<script src='https://cdn.perfdrive.com/aperture/aperture.js'></script>"),
          "kept: on passed pages too"),
    Shape("radware", "a bank's front page", 200,
          page(30, "<link rel=stylesheet href='https://captcha.perfdrive.com/captcha-public/css/a.css'>"), "kept"),
    Shape("qrator", "its server", 200, page(40), "kept", {"Server": "QRATOR"}),
    Shape("qrator", "its script on a passed page", 200, page(40, "<script src='/__qrator/qauth_utm_v2.js'></script>"),
          "kept"),
    Shape("reblaze", "its cookie", 200, page(40), "wafw00f's list", {"Set-Cookie": "rbzid=a; path=/"}),
    Shape("stackpath", "its network", 200, page(40), "ours", {"X-Hw": "1790000000.dop1"}),
    Shape("azure", "its header", 200, page(40), "Azure docs, Front Door", {"X-Azure-Ref": "20260101T000000Z"}),
    Shape("azure", "the application's own 403", 403, page(20), "ours", {"X-Azure-Ref": "20260101T000000Z"}),
    Shape("anubis", "its manual", 200, page(90, body="<code>/.within.website/x/cmd/anubis/static/js/main.mjs</code>"),
          "ours"),
    Shape("anubis", "a passed page", 200, page(40), "its source", {"Set-Cookie": "techaro.lol-anubis-auth=a; Path=/"}),
    Shape("go-away", "its repository", 200,
          page(40, body="<a href='https://git.gammaspectra.live/git/go-away/src/cmd/go-away/'>source</a>"), "ours"),
    Shape("siteground", "its headers", 200, page(40), "kept", {"X-Sg-Cdn": "1"}),
    Shape("aliyun", "its cookie", 200, page(40), "kept", {"Set-Cookie": "acw_tc=a; path=/"}),
    Shape("wordfence", "a blog that uses it", 200, page(20, body="<p>Protected by Wordfence</p>"), "ours"),
    Shape("hcaptcha", "a form", 200, page(10, body=HCAPTCHA), "hCaptcha docs"),
    Shape("hcaptcha", "a login form that refuses", 401, page(10, body=HCAPTCHA), "ours"),
    Shape("recaptcha", "a form", 200, page(10, body=RECAPTCHA), "reCAPTCHA docs"),
    Shape("recaptcha", "a form that refuses", 403, page(10, body=RECAPTCHA), "ours"),
    Shape("unnamed", "a search that shows the query", 200, page(15, body=f"<p>Nothing found for {ECHO}</p>"), "ours",
          path="/search?q=" + ECHO.replace(" ", "+")),
    Shape("unnamed", "an article about walls", 200, page(200, body=f"<p>{ECHO}</p>"), "ours"),
    Shape("unnamed", "nginx refuses", 403, b"<html><head><title>403 Forbidden</title></head><body><center><h1>"
          b"403 Forbidden</h1></center><hr><center>nginx</center></body></html>", "nginx's page"),
    Shape("unnamed", "IIS refuses", 403, bare("<h2>403 - Forbidden: Access is denied.</h2>"), "IIS's page"),
    Shape("unnamed", "Apache asks for a password", 401, bare("<h1>Unauthorized</h1>"), "Apache's page",
          {"WWW-Authenticate": "Basic realm=a"}),
    Shape("unnamed", "maintenance", 503, page(30, title="Down for maintenance"), "WordPress's page"),
    Shape("unnamed", "too many requests", 429, bare("<h1>Too Many Requests</h1>"), "nginx's page"),
]  # fmt: skip

_KPSDK = (
    "<script>window.KPSDK={};KPSDK.now=Date.now;KPSDK.start=KPSDK.now();</script>"
    "<script src='/ab/cd/ips.js?KP_UIDz=a'></script>"
)
_INCIDENT = (
    '<iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=22&xinfo=0-1-0%200NNN&incident_id=480000110055-707313&'
    'edet=15&rpinfo=0" width="100%">Request unsuccessful. Incapsula incident ID: 480000110055-707313</iframe>'
)
_DD = (
    '<p id="cmsg">Please enable JS and disable any ad blocker</p><script data-cfasync="false">'
    "var dd={'rt':'c','cid':'AHrl','hsh':'13C44B','t':'fe','s':48047,'host':'geo.captcha-delivery.com'}</script>"
    '<script data-cfasync="false" src="https://ct.captcha-delivery.com/c.js"></script>'
)
_ANUBIS_WORDS = (
    "You are seeing this because the administrator of this website has set up Anubis to protect the server against "
    "the scourge of AI companies aggressively scraping websites. "
)
_ANUBIS = (
    "<title>Making sure you're not a bot!</title>"
    '<script id="anubis_version" type="application/json">"v1.21.3"</script>'
    '<script id="anubis_challenge" type="application/json">{"rules":{"difficulty":4}}</script>'
    '<script async type="module" src="/.within.website/x/cmd/anubis/static/js/main.mjs?v1.21.3"></script>'
)

WALLS = [
    Shape("cloudflare", "managed challenge", 403,
          bare("<noscript>Enable JavaScript and cookies to continue</noscript>" + CHL),
          "kept, of 2026", {"Cf-Mitigated": "challenge"}),
    Shape("cloudflare", "managed challenge without its header", 403, bare(CHL, "<title>Just a moment...</title>"),
          "kept"),
    Shape("cloudflare", "a challenge that a cache made a 200", 200, bare(CHL, "<title>Just a moment...</title>"),
          "ours"),
    Shape("cloudflare", "its script alone", 503,
          bare("<script src='/cdn-cgi/challenge-platform/h/g/orchestrate/jsch/v1?ray=8f1a'></script>"), "kept"),
    Shape("cloudflare", "a challenge of whatever status", 429, b"", "kept: 429 of a shop",
          {"Cf-Mitigated": "challenge"}),
    Shape("cloudflare", "under attack", 503, bare('<div class="cf-browser-verification cf-im-under-attack"></div>'),
          "kept"),
    Shape("cloudflare", "a rule blocks", 403,
          bare('<div id="cf-error-details"><h1>Sorry, you have been blocked</h1></div>'), "reported"),
    Shape("imperva", "an incident", 403, bare(_INCIDENT, INCAPSULA), "reported"),
    Shape("imperva", "an incident with 200", 200, bare(_INCIDENT, INCAPSULA), "reported"),
    Shape("imperva", "an incident of an older kind", 200,
          bare('<iframe src="/_Incapsula_Resource?CWUDNSAI=9">Incapsula incident ID: 1-2</iframe>'),
          "kept"),
    Shape("imperva", "interruption", 405, bare("<p>something about your browser made us think you were a bot.</p>",
          "<title>Pardon Our Interruption</title>"), "kept"),
    Shape("datadome", "device check", 403, bare(_DD, "<title>a.test</title>"), "kept",
          {"X-DataDome": "protected", "X-DD-B": "1"}),
    Shape("datadome", "device check without headers", 200, bare(_DD), "kept"),
    Shape("datadome", "captcha", 403, bare('<iframe src="https://geo.captcha-delivery.com/captcha/?cid=a"></iframe>'),
          "kept"),
    Shape("datadome", "JSON", 403, b'{"url":"https://geo.captcha-delivery.com/captcha/?cid=a"}', "kept",
          {"X-DD-B": "2", "Content-Type": "application/json"}),
    Shape("aws waf", "challenge without a body", 202, b"", "AWS docs", {"X-Amzn-Waf-Action": "challenge"}),
    Shape("aws waf", "captcha", 405, bare("<div id=captcha-container></div>"), "AWS docs",
          {"X-Amzn-Waf-Action": "captcha"}),
    Shape("aws waf", "challenge by its script", 202,
          bare("<script>window.awsWafCookieDomainList=[];window.gokuProps={};</script>" + AWS_SDK), "kept"),
    Shape("aws waf", "a rule blocks", 403,
          bare("<h2>The request could not be satisfied.</h2>Request blocked. "
               "<pre>Generated by cloudfront (CloudFront)</pre>"),
          "reported"),
    Shape("perimeterx", "press and hold", 403,
          bare('<div id="px-captcha"></div><script>window._pxAppId="PXa";</script>'
               '<script src="https://captcha.px-cdn.net/PXa/captcha.js?a=c"></script>',
               "<title>Access to this page has been denied</title>"), "kept"),
    Shape("perimeterx", "press and hold with 200", 200, bare('<script>window._pxAppId="PXa";</script>',
          "<title>Access to this page has been denied.</title>"), "kept"),
    Shape("akamai", "behaviour is watched", 200, bare('<div id="sec-if-cpt-container">Powered and protected by</div>'),
          "kept"),
    Shape("akamai", "a sum to do", 428, bare('<iframe src="/_sec/cp_challenge/ak-challenge-3-3.htm"></iframe>'),
          "kept"),
    Shape("akamai", "interstitial", 200, bare("<script>xhr.open('POST','/_sec/verify?provider=interstitial')</script>",
          "<meta http-equiv='refresh' content=\"5; URL='/?bm-verify=AAQ'\">"), "kept"),
    Shape("akamai", "denied", 403,
          b"<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n"
          b"Reference&#32;&#35;18&#46;4b2f1602&#46;1727&#46;1a\n<P>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net</P></BODY>",
          "reported; kept"),
    Shape("sucuri", "its sum", 200, bare("<script>var s={},sucuri_cloudproxy_js='',S='YT0n';</script>"), "kept"),
    Shape("sucuri", "denied", 403, bare("", "<title>Sucuri WebSite Firewall - Access Denied</title>"), "reported"),
    Shape("ddos-guard", "a script", 403, bare("", "<title>DDoS-Guard</title>"
          '<script src="/.well-known/ddos-guard/js-challenge/index.js"></script>'), "kept"),
    Shape("ddos-guard", "a captcha", 403,
          bare('<script src="/.well-known/ddos-guard/ddg-captcha-page/index.js"></script>'), "kept"),
    Shape("geetest", "a captcha before everything", 403,
          bare("<input type=hidden name=geetest_challenge>" + GEETEST), "GeeTest's fields"),
    Shape("kasada", "its script", 429, bare(_KPSDK), "kept", {"X-Kpsdk-Ct": "01abc"}),
    Shape("vercel", "attack mode", 429, bare("<p>We're verifying your browser</p>"), "kept",
          {"X-Vercel-Mitigated": "challenge"}),
    Shape("vercel", "attack mode, by its title", 403, bare("", "<title>Vercel Security Checkpoint</title>"), "kept"),
    Shape("fastly", "client challenge", 200,
          bare("Please enable JavaScript to proceed.", "<title>Client Challenge</title>"
          '<link href="/_fs-ch-1T1wmsGaOgGaSxcX/assets/styles.css" rel="stylesheet">'), "kept"),
    Shape("f5", "rejected", 200,
          b"<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. "
          b"Please consult with your administrator.<br><br>Your support ID is: 14396929317839226498<br><br>"
          b"<a href='javascript:history.back();'>[Go Back]</a></body></html>", "F5 docs, Blocking Response Pages"),
    Shape("f5", "a script", 200,
          bare("<noscript>Please enable JavaScript to view the page content.<br/>Your support ID is: 64"
          "</noscript>", BOBCMN), "kept"),
    Shape("radware", "captcha", 200, bare("We apologize for the inconvenience", "<title>Radware Captcha Page</title>"
          "<link rel=stylesheet href='https://captcha.perfdrive.com/captcha-public/css/a.css'>"), "kept"),
    Shape("radware", "captcha of an older name", 200, bare("", "<title>ShieldSquare Captcha</title>"
          '<link rel="icon" href="http://captcha.perfdrive.com/captcha-public/images/favicon.png">'), "kept"),
    Shape("qrator", "a script", 401, bare("", '<script src="/__qrator/qauth_utm_v2d_v9118.js"></script>'), "kept"),
    Shape("reblaze", "a script", 200, bare("<script>window.rbzns={bereshit:'1',seed:'a'};winsocks();</script>"),
          "kept"),
    Shape("stackpath", "blocked", 403, bare("An action has triggered the service and blocked your request."),
          "wafw00f's list"),
    Shape("azure", "a script", 403,
          bare("", '<meta name="description" content="Azure WAF JS Challenge"/><title>Azure WAF</title>'),
          "kept"),
    Shape("azure", "a rule blocks", 403, bare("<h2>The request is blocked.</h2>"), "Azure docs, WAF policy settings",
          {"X-Azure-Ref": "20260101T000000Z"}),
    Shape("anubis", "a proof of work", 200,
          bare(_ANUBIS_WORDS * 6 + "<a href=https://anubis.techaro.lol>Anubis</a>", _ANUBIS),
          "its source and kept"),
    Shape("go-away", "a proof of work", 418,
          bare('<script src="/.well-known/.git.gammaspectra.live/git/go-away/cmd/go-away/challenge/js/challenge.mjs">'
               "</script>"), "its documentation and kept"),
    Shape("siteground", "a captcha", 202,
          bare("", '<meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=%2F">'), "kept",
          {"Sg-Captcha": "challenge"}),
    Shape("aliyun", "a cookie to compute", 200,
          bare("<script>var arg1='3A2F';function f(){document.cookie='acw_sc__v2='}</script>"),
          "kept"),
    Shape("wordfence", "blocked", 503,
          bare("<p>Your access to this site has been limited. Generated by Wordfence</p>"), "kept"),
]  # fmt: skip


def read(shape: Shape, flags: int = 0) -> ReadPage:
    """What the crawl reads of the answer."""
    url = f"http://a.test{shape.path}"
    row = QueuedPage("a.test", b"k" * 24, url, 10, 1, 2, "LL", "http://a.test/", flags=flags)
    headers = {"Content-Type": "text/html", **shape.headers}
    response = HtmlResponse(url, status=shape.status, body=shape.body, headers=headers)
    reader = PageReader(cast("Any", None), Unmarked(), "TestBot", cast("Any", None))
    found = reader.read(Lease(row, Host("a.test", 0.0), "192.0.2.1", 0.0, 1.0), response)
    assert isinstance(found, ReadPage)
    return found
