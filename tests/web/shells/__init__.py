"""Application shells: pages that are nothing without their scripts.

``*.html`` beside this file are starter templates of the npm registry as ``python -m benchmarks.app_shells.build`` built
them; ``HANDMADE`` follows what other generators and older frameworks write.
"""

from __future__ import annotations

from pathlib import Path

_HEAD = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head>'


def _page(title: str, body: str, head: str = "") -> str:
    return f"{_HEAD.format(title=title, head=head)}<body>{body}</body></html>"


HANDMADE = {
    "create-react-app": _page(
        "React App",
        "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>",
        '<script defer src="/static/js/main.3f1c2ab1.js"></script><link href="/static/css/main.css" rel=stylesheet>',
    ),
    "vue-cli": _page(
        "vue",
        "<noscript><strong>We're sorry but vue doesn't work properly without JavaScript enabled.</strong></noscript>"
        "<div id=app></div>",
        '<script defer src="/js/chunk-vendors.9a1.js"></script><script defer src="/js/app.71c.js"></script>',
    ),
    "angular-cli": _page(
        "App",
        '<app-root></app-root><script src="runtime.1f2.js" type="module"></script>'
        '<script src="polyfills.2a.js" type="module"></script><script src="main.3b.js" type="module"></script>',
        '<base href="/">',
    ),
    "angularjs": _page(
        "phones",
        '<div ng-app="phones"><div ng-view></div></div><script src="angular.js"></script><script src=a.js></script>',
    ),
    "next-client-only": _page(
        "next",
        '<div id="__next"><div class="spinner">Loading...</div></div><script id=__NEXT_DATA__ type="application/json">'
        '{"props":{"pageProps":{}},"page":"/","query":{}}</script>',
        '<script src="/_next/static/chunks/main-1.js" defer></script>',
    ),
    "nuxt-spa": _page(
        "nuxt",
        '<div id="__nuxt"></div><script>window.__NUXT__={config:{app:{baseURL:"/"}}}</script>',
        '<script type="module" src="/_nuxt/entry.1a.js"></script>',
    ),
    "sveltekit-spa": _page(
        "kit",
        '<div style="display: contents"><script>{__sveltekit_1={base:""};Promise.all([import("/_app/immutable/a.js")])}'
        "</script></div>",
        '<link href="/_app/immutable/entry/start.js" rel="modulepreload">',
    ),
    "flutter": _page("flutter", '<script src="flutter_bootstrap.js" async></script>', '<base href="/">'),
    "blazor": _page("blazor", '<div id="app">Loading...</div><script src="_framework/blazor.webassembly.js"></script>'),
    "ember": _page("ember", '<script src="/assets/vendor.js"></script><script src="/assets/app.js"></script>'),
    "elm": _page("elm", '<div id="elm"></div><script src="/elm.js"></script><script>Elm.Main.init()</script>'),
    "german": _page(
        "Anwendung",
        "<noscript>Bitte aktivieren Sie JavaScript, um diese Anwendung zu nutzen.</noscript><main></main>",
        '<script src="/bundle.js"></script>',
    ),
    "spanish": _page(
        "Aplicación",
        '<noscript>Por favor, habilita JavaScript para usar esta página.</noscript><div class="contenido"></div>',
        '<script src="/bundle.js"></script>',
    ),
    "splash": _page(
        "splash",
        '<div id="application"><img src="/logo.svg" alt=""><p>Starting up, one moment please</p></div>'
        '<script src="/main.js"></script>',
    ),
    "webpack": _page("app", '<div class="main"></div><script src="/runtime~main.1.js"></script>'),
}

_CSS = "<style>" + ".a{margin:0;padding:0;color:#123456}" * 340 + "</style>"  # 12 KB
_STATE = "<script>window.__STATE__=" + '{"id":1,"name":"nothing of this is shown"},' * 680 + "0</script>"  # 29 KB
_LINKS = "".join(f'<a href="/{name}">{name}</a> ' for name in ("home", "about", "help", "terms", "privacy", "contact"))
FATTENED = ("thin", "styled", "with state", "with a frame", "with all of it")


def fatten(html: str, kind: str) -> str:
    """The shell as larger projects serve it: inline styles, inline state, a header and a footer with six links."""
    everything = kind == "with all of it"
    if kind == "styled" or everything:
        html = html.replace("</head>", _CSS + "</head>", 1)
    if kind == "with state" or everything:
        html = html.replace("</body>", _STATE + "</body>", 1)
    if kind == "with a frame" or everything:
        html = html.replace("<body>", f"<body><header>{_LINKS}</header>", 1)
        html = html.replace("</body>", f"<footer>{_LINKS} All rights reserved.</footer></body>", 1)
    return html


def shells(folder: Path | None = None) -> dict[str, str]:
    """Every shell in every fatness, by name; ``folder`` holds built ones (default: the sample beside this file)."""
    built = {path.stem: path.read_text() for path in sorted((folder or Path(__file__).parent).glob("*.html"))}
    return {f"{name}, {kind}": fatten(html, kind) for name, html in {**built, **HANDMADE}.items() for kind in FATTENED}
