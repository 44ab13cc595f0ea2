"""How the operator's own command or URL hears of a crawl: the word that is sent, and its delivery."""
