"""`python -m tiergraph` is the `tiergraph` command."""

from .cli import main

raise SystemExit(main())
