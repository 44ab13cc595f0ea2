"""Engines of others that do a step of the batch where one machine, or its memory, is too small.

A step is the same function wherever it runs: what an engine adds is where, and how many at a time. The local engine
needs none of this room, which is imported when ``--engine`` asks for it.
"""
