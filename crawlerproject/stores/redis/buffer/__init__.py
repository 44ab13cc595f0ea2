"""What a worker has in memory of a frontier in Redis: it answers from here, and sends what it decided once a batch."""
