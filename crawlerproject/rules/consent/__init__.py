"""What a site says of the use of its pages, and what follows for the purpose that a crawl has."""
