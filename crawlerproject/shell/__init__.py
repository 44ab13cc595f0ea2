"""``scrapy shell`` and its kin under the same politeness: ``page`` as our reader sees it, refusals said aloud."""
