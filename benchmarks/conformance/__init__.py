"""Cases of peers and standards, run against ours: `make conformance`."""
