"""Item pipelines for the pages of a crawl: what a page repeats, then its links, its WARC records and its lease's end.

A page is a ``LeaseResult``. ``PageProcessor`` (ITEM_PROCESSOR) brings it through ``DedupPipeline``, a project's
pipelines that are ``for_pages``, and ``WarcPipeline``; all other items go through the project's other pipelines.
"""
