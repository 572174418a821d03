"""Commands about this machine: what it has, what its drives give, and graphs on raw drives."""
