"""Steps after the crawl, each reading only the files of the one before: plan, process, load, search, rank.

Every step writes beside and renames, remembers what is done, and gives the same result however often it is stopped
and run again.
"""
