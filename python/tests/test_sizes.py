import pytest

from tiergraph import _native
from tiergraph.arguments.sizes import to_bytes


@pytest.mark.parametrize(
    ("size", "expected"),
    [("2GiB", 2 << 30), ("512M", 512 << 20), ("1.5k", 1536), ("77", 77), (77, 77), (None, None)],
)
def test_sizes_are_read_as_bytes(size, expected):
    assert to_bytes(size) == expected


def test_sizes_print_in_binary_units():
    assert _native.format_size(3 << 29) == "1.5 GiB"
