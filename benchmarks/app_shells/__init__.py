"""Application shells: HTML that is nothing without its scripts, built as real projects build it."""
