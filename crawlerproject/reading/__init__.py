"""Reading where nothing waits for it: a process of its own takes pages that are large, or that an odd shape makes dear.

A ``Job`` goes out, a ``Reading`` comes back. The process may die or take too long: the page is then archived like any
other, and its links are not read.
"""
