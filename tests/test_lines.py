"""Nobody outside forges a line of the log, or floods one."""

import logging

import pytest

from tap_public_jobs.lines import LONGEST_LINE, OneLineRecord, quoted, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ingénieur - 日本語, 𝄞 \\ 'x'", "Ingénieur - 日本語, 𝄞 \\ 'x'"),
        ("a\r\nb\x85c\u2028d\te", r"a\r\nb\x85c\u2028d\te"),
        ("\x1b[2J\x9b\0\x7f", r"\x1b[2J\x9b\x00\x7f"),
        ("\u202egnp\u2066\u200b\ufeff", r"\u202egnp\u2066\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("x" * LONGEST_LINE + ". Run again.", None),
    ],
)
def test_a_message_is_one_line(text: str, shown: str | None) -> None:
    """What a terminal or a reader of lines obeys is escaped; a long line keeps its end."""
    record = OneLineRecord("x", logging.INFO, "", 0, "%s", (text,), None)
    line = record.getMessage()

    assert shown in {line, None}
    assert line.isprintable()
    assert len(line) <= LONGEST_LINE + 1
    assert line.endswith(" Run again.") or shown


def test_a_name_is_short() -> None:
    assert shortened("n" * 100) == "n" * 100
    assert quoted("a" * 500 + "z") == "'" + "a" * 74 + "…" + "a" * 23 + "z'"
