"""One engine a file, all with the same commands; `serve` runs one in a process of its own."""
