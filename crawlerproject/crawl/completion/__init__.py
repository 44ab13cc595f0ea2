"""How pages end: compared, archived, logged, their leases ended, and all of it committed together."""
