"""A real Prometheus watches real crawls while troubles are made and taken away: which alerts fire, and which end.

``scenarios`` is the table: each crawl with its trouble and the alerts that it is to raise. ``troubles`` makes them from
outside, ``wrong`` is what runs within a crawl that has a fault of its own, ``web`` answers, ``prometheus`` watches.
``expressions`` is what dashboard and rules ask.
"""
