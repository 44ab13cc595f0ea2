"""When a host, a template of URLs or another site's links yield nothing new any more."""
