"""Where the histories of hosts are kept: a fact of the store each."""

HOST_FACT = "visits:"
"""Before the host key."""
