"""Reads pages, each once: ``PageReader`` makes a ``ReadPage`` of an answer.

Pages that are large, or that an odd shape makes dear, are read in a process of their own: a ``Job`` goes out, a
``ReadPage`` comes back. When that process dies or takes too long the page is archived all the same, without links.
"""
