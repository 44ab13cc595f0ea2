"""For scrapyd-deploy, which builds an egg with it. Everything is in pyproject.toml."""

from setuptools import setup

setup()
