"""When two texts are nearly the same: SimHash fingerprints and the tables that find close ones."""
