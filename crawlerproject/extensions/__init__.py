"""Scrapy extensions: the commit loop, the status file and page, progress, the log's shape. Each can be switched off
but two.

``commit_loop`` and ``error_log`` stay: without them nothing that is fetched would count.
"""
