"""Downloader middlewares. They decide early; ``guard``, asked by the download handler, decides in the end."""
