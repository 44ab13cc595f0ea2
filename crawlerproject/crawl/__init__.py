"""One running crawl: the store, the frontier and the archive together.

``crawl`` opens and closes it, ``parts`` builds what it is made of, ``first_urls`` queues what it begins with,
``page_ends`` ends each page (``render_ends`` those that met the browser), ``commits`` makes the ends durable,
``figures`` says how it stands. ``scheduler`` is the crawl as Scrapy's engine sees it, with ``loader``, ``lookups``,
``pushes`` and ``wake_up``; ``running`` is how extensions find it.
"""
