import pytest

import tiergraph as tg


def test_a_message_has_its_parts_in_order():
    error = tg.InputError.of("use", "x", expected="a cat", got="a dog", hint="try a cat")
    assert str(error) == "cannot use `x`: expected a cat, got a dog\n\nhint: try a cat"
    assert str(tg.Error.of("go on")) == "cannot go on"
    assert str(tg.IoError.of("read", "f", got="end of file")) == "cannot read `f`: end of file"


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (tg.FormatError, Exception),
        (tg.DeviceError, Exception),
        (tg.BudgetError, Exception),
        (tg.InputError, ValueError),
        (tg.IoError, OSError),
    ],
)
def test_each_error_is_a_tiergraph_error(kind, builtin):
    assert issubclass(kind, tg.Error)
    assert issubclass(kind, builtin)


def test_the_native_part_raises_these_classes():
    with pytest.raises(tg.InputError, match="cannot read the size `2 parsecs`") as caught:
        tg.open("nowhere.tg", memory="2 parsecs")
    assert isinstance(caught.value, ValueError)
