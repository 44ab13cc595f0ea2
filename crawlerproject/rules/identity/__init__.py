"""Who asks: keys, signatures of requests (RFC 9421, Web Bot Auth), and what a verifier makes of them."""
