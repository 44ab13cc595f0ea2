"""Where workers meet: who holds which partition, the journals and copies of these, inboxes, addresses."""
