"""What the scripts share: measuring, reporting, and processes of their own."""
