"""``scrapy desk``: crawls of one folder shown in a browser, and the operator's orders to them, behind a token.

A process of its own, which reads what the crawls write into their folders: a crawl knows nothing of it and pays
nothing. ``door`` lets in who has the token, ``crawl_panels`` finds what is shown, ``desk_views`` makes pages of it. An
order is a command of ours, run as the operator would run it.
"""
