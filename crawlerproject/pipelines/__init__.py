"""Item pipelines for the pages of a crawl: what a page repeats, then its records in the WARC files.

Their items are ``LeaseResult``s, and ``crawl/completion/pipeline.py`` runs them by itself: ITEM_PIPELINES is the
project's, so no setting takes these away and no pipeline of a project comes between. In ITEM_PIPELINES they disable
themselves.
"""

NOT_FOR_SCRAPY = "a crawl runs it by itself"
"""Why Scrapy gets none for ITEM_PIPELINES; settings of earlier versions name them there."""
