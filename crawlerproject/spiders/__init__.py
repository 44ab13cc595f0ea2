"""The spiders: ``web`` walks from seeds, ``plan`` fetches the pages of a plan."""
