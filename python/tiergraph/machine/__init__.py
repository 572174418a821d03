"""What this machine has: its drives, and what tiergraph can do with it."""
