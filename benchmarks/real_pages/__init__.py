"""Some 4,400 real pages (Debian's handbook, PostgreSQL's manual) served by nginx on loopback and crawled."""
