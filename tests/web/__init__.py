"""The synthetic web: a real HTTP server on loopback with many host names, whose every address is known beforehand.

``graph`` is its model (sites, pages, links, what a polite crawler must, may and must not ask for), ``sites``
and ``ugly`` fill it, ``server`` answers, ``judge`` reads the server's log afterwards. Everything is
deterministic: the same profile and port give the same bytes.
"""
