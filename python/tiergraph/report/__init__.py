"""Runs as a page to look at: one HTML file that needs no network.

`runs` reads what `--json` and `--trace` wrote, `figures` draws it (Bokeh), `page` puts it together.
"""

from .page import check, write
from .runs import Run, Spans, of, read, spans_of

__all__ = ["Run", "Spans", "check", "of", "read", "spans_of", "write"]
