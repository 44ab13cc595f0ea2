"""Decisions: plain values in, a small answer out. No clock, no files, no network, no Scrapy."""
