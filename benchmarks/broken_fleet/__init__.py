"""A fleet of three machines over Redis under everything that may befall its network, clocks, disks and Redis."""
