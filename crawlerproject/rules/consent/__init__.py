"""What a site says of the use of its pages, in all the words there are for it, and what follows for one purpose.

``verdict`` has the table of precedence. Each word comes as a line of a capture's metadata record (its name says where
it was found), so that a crawl and those who use its archive judge by the same lines.
"""
