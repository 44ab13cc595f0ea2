"""Pages that need a browser: Chromium, driven by scrapy-playwright, asking for nothing by itself.

A page to render is a lease like any other. The browser has no network: its one navigation is answered from the stored
plain answer, and every script or data file it wants goes through ``embeds`` to our own fetch path, log and archive.
"""
