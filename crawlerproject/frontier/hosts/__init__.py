"""One host's state, the hosts that wait on disk, and those of one registered domain."""
