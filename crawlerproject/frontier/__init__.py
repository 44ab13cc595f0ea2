"""What is fetched next, and what becomes of it. No Scrapy, no network; time is an argument.

A ``DiscoveredUrl`` enters by ``admission`` through ``url_filters`` into its host's queue; ``workbench`` says which host
is free, ``leasing`` hands its next page out as a ``Lease``, ``frontier`` takes the ``Visit`` back and ``politeness``
sets the host's next moment. ``frontier_state`` gathers the changes until a commit. ``frontier`` is the door to all of
it.
"""
