"""Arguments of public calls: their names, checks, conversions, and words for messages."""
