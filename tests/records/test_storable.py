"""Values that would stop a warehouse are replaced; all others stay as they are."""

from decimal import Decimal

import pytest

from tap_public_jobs.records.storable import storable

REPLACEABLE = [
    pytest.param("a\0b", "a\ufffdb", id="NUL"),
    pytest.param("\ud800", "\ufffd", id="first half of a surrogate pair"),
    pytest.param("x\udfff\0", "x\ufffd\ufffd", id="each character"),
    pytest.param(2**63, "9223372036854775808", id="integer beyond 64 bits"),
    pytest.param(-(2**63) - 1, "-9223372036854775809", id="negative integer beyond 64 bits"),
    pytest.param(Decimal("1E+22"), "1E+22", id="decimal beyond 64 bits"),
    pytest.param(Decimal(f"{2**63}.5"), "9223372036854775808.5", id="fraction beyond 64 bits"),
    pytest.param(Decimal("-1E+999999999999"), "-1E+999999999999", id="decimal beyond a double"),
    pytest.param(Decimal("1E-309"), "1E-309", id="decimal too small for a double"),
    pytest.param(Decimal("1" * 5000), "1" * 5000, id="integer that Python does not convert"),
    pytest.param(Decimal("0." + "1" * 4301), "0." + "1" * 4301, id="fraction of 4,301 digits"),
    pytest.param(Decimal("12." + "1" * 4299), "12." + "1" * 4299, id="4,301 digits in all"),
    pytest.param(Decimal("0E+4301"), "0E+4301", id="zero that would be written with many zeros"),
]

UNCHANGED = [
    None,
    True,
    "ü 😀 \u2028 \ufffd \x01",
    0,
    -(2**63),
    2**63 - 1,
    Decimal(2**63 - 1),
    Decimal("62500.50"),
    Decimal("0E+400"),
    Decimal("1E-308"),
    Decimal("0." + "1" * 4300),
    [1, [None, {"a": Decimal("1.0")}]],
]


@pytest.mark.parametrize(("value", "replaced"), REPLACEABLE)
def test_what_cannot_be_stored_is_replaced_at_any_depth(value: object, replaced: object) -> None:
    assert storable(value) == replaced
    assert storable([1, [value]]) == [1, [replaced]]
    document = {"a": {"b": [value]}, "c": "d", "\0": 1}
    assert storable(document) == {"a": {"b": [replaced]}, "c": "d", "\ufffd": 1}
    assert "\0" in document  # the original stays as it is


@pytest.mark.parametrize("value", UNCHANGED, ids=lambda value: repr(value)[:30])
def test_any_other_value_is_unchanged(value: object) -> None:
    assert repr(storable(value)) == repr(value)
    assert repr(storable({"a": [value]})) == repr({"a": [value]})
