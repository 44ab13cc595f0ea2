"""Events of a crawl for the operator's own command or URL: what is sent, and its delivery."""
