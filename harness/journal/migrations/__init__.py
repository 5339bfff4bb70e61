"""Schema history of the journal's database, applied when it is opened."""
