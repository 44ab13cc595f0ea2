"""Rebuilds a damaged or missing frontier from what a crawl leaves behind: WARC files and the request log.

``damage`` finds out whether a frontier can be read to its end. ``attempts`` brings the captures of the WARC files and
the lines of the request log into the order in which they happened. ``replay`` gives them, one after the other, to a new
frontier, with the crawl's own code and the moments of then: what a page was worth, where its links led, how its host is
to be treated is decided as it was decided the first time. ``rebuild`` does that beside the old frontier, which is moved
aside when the new one is whole.

Invariant: whatever ends the process, the folder has its old frontier or its new one, and no archived page waits.
"""
