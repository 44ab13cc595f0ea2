"""A running crawl shown to people: what the page of ``WATCH_PORT`` says, and the page itself.

The event loop gives what it has at hand: figures of the last hour (``live``), the hosts in memory, looked at some
hundred at a time (``host_sampler``), the machine (``machine``), the other workers (``fleet_summary``). What needs the
store or the log, and what ``scrapy why`` says, comes from another process (``questions``). The page is three static
files that read JSON (``pages``).
"""
