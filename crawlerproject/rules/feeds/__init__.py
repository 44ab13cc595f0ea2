"""Sitemaps, RSS, Atom and WebSub, read as bytes from strangers."""
