"""The queries on the tables for analysts are short, and of tables that are there."""

import re

from e2e.pipeline import REPOSITORY
from queries.pages import QUESTIONS, former_tables
from support.expected import MODELS
from support.exports import KEYS
from support.pages import EVERYWHERE, PAGES

MOST_LINES, WIDEST = 4, 120


def test_a_question_is_a_short_query() -> None:
    long = [
        str(it)
        for it in QUESTIONS
        if len(it.query.splitlines()) > MOST_LINES or max(map(len, it.query.splitlines())) > WIDEST
    ]
    assert QUESTIONS
    assert not long


def test_no_other_text_names_a_former_table() -> None:
    gone = former_tables().keys() - MODELS.keys()
    names = "|".join(it for it in gone if "_" in it and it != "knockout_questions")
    # Words that other things have, too.
    former = re.compile(rf"\b({names}|analytics\.(listings|completeness|knockout_questions))\b")
    files = [
        *EVERYWHERE,
        *(REPOSITORY / "pipeline").rglob("*.yml"),
        *REPOSITORY.rglob("sandbox/**/*.py"),
    ]
    found = {
        f"{path.name}: {it[0]}"
        for path in files
        for it in former.finditer(path.read_text(encoding="utf-8"))
        if path.name != "old-names.md"
    }
    assert len(gone) > len(MODELS) - len(gone)
    assert not found


def test_the_page_has_the_key_of_each_table_of_an_export() -> None:
    _, _, section = PAGES["questions"].partition("\n### What is new since the last export?\n")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert dict(rows) == KEYS
