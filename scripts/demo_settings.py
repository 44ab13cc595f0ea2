"""Settings of the demonstrations in docs/, so that commands stand there as an operator types them."""

from crawlerproject.settings import *  # noqa: F403

CRAWLER_CONTACT = "you@example.org"
PACE_PRESET = "mirror"
FETCH_ALLOW_NETWORKS = ["127.0.0.0/8"]
FETCH_HOSTS_FILE = "hosts"
BACKOFF_START_SECONDS = 1
HOST_MAX_FAILURES = 3
RENDER = "never"
