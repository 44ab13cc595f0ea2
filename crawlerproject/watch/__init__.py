"""A running crawl shown to people: what the page of ``WATCH_PORT`` says, and the page itself.

The event loop gives what it has at hand: figures of the last hour (``last_hour``), the hosts in memory, looked at some
hundred at a time (``survey``), the machine (``machine``). What needs the store or the log, and what ``scrapy why``
says, comes from another process (``questions``). The page is three static files that read JSON (``pages``).
"""
