"""An HTML page read once: encoding, links, what it asks of robots, text and words; and pages built to choke a
parser.
"""
