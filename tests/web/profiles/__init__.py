"""What the synthetic web may consist of: one profile a file, each with hosts that do what the real web does."""
