"""A fleet without a server under trouble, and how much faster than one process it is."""
