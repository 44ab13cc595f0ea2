"""Renders pages that need a browser, in Chromium through scrapy-playwright. The browser has no network of its own.

A page to render is a lease like any other. Its navigation is answered from the archived plain response; each script and
data file is a sub-request (``subresources``) that takes our own fetch path, with its log and archive.
"""
