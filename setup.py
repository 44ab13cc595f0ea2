"""For scrapyd alone: what goes into the egg that ``make deploy`` builds. Everything else is in pyproject.toml."""

from setuptools import find_packages, setup

from crawlerproject import __version__

setup(
    name="crawlerproject",
    version=__version__,
    packages=find_packages(include=["crawlerproject", "crawlerproject.*"]),
    # Whatever lies beside the code; read with importlib.resources, since scrapyd does not unpack the egg.
    package_data={"": ["*.txt", "*.json", "*.csv", "*.html", "*.css", "*.js"]},
    entry_points={"scrapy": ["settings = crawlerproject.settings"]},
)
