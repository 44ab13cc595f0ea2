"""An archive's way to another place (S3, Google, Azure, a mounted folder), and reading it from there.

A process of its own (``upload_process``), beside the crawl or after it, looks at the crawl's folder
(``upload_sources``), sends what is closed (``uploader``) to its place (``upload_target``), has that confirm size and
digest, and only then, if so wanted, removes it here. The journal is written before each step, so a death at any moment
repeats one step at most. Nothing here is imported by a crawl whose ARCHIVE_URL is empty.
"""
