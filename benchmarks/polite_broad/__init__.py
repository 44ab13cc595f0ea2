"""Many hosts at a fixed pace: how close the crawl comes to what politeness allows, and in how much memory."""
