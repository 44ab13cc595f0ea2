"""robots.txt (RFC 9309): ``parser`` reads the octets, ``matcher`` finds the rule for a path, ``policy`` says what
follows.
"""
