"""URLs, hosts and addresses: their forms and keys, and which may be asked at all."""
