"""Item pipelines: what a page repeats, then its archive record, log line and the end of its lease."""
