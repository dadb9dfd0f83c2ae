"""Long and untidy texts, as people paste them into an applicant tracking system.

How long, and how untidy, says `docs/change/sandbox.md`, from what public boards of jobs hold.
"""

import json
from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

# The characters of a text by its place among all texts, sorted by length: half are shorter than
# 5,600. One in a hundred is empty, and one in a hundred is some 30,000 long.
QUANTILES = (
    (0.01, 800), (0.1, 3_200), (0.25, 4_200), (0.5, 5_600), (0.75, 7_900), (0.9, 10_200),
    (0.98, 13_500), (0.99, 28_000), (1.0, 31_000),
)  # fmt: skip

_STEPS = tuple(pairwise(QUANTILES))

INTRO = '<div class="content-intro">'
# Paragraphs as they come out of one editor or another; two of them with pasted styles.
PARAGRAPHS = (
    "<p>{}</p>",
    "<p>{}</p>\n",
    "<p>{}&nbsp;</p>",
    '<p><span style="font-weight: 400;">{}</span></p>',
    (
        '<p style="margin: 0cm 0cm 8pt; line-height: 107%;"><span style="font-size: 11pt; '
        'font-family: Calibri, sans-serif; color: #222222;">{}</span></p>'
    ),
    '<p data-renderer-start-pos="117">{}</p>\n<p>&nbsp;</p>',
    "<div>{}<br><br></div>",
)
ITEMS = ("<li>{}</li>", "<li>{}</li>\n", "<li>{}&nbsp;</li>", "<li><p>{}</p></li>", "<li>• {}</li>")
EMOJI = ("🚀", "🎉", "👋", "🌍", "💡")

# What all texts of an organisation share, which is half of many boards' text; and what differs.
WORDS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def overview(random: Random, organisation: str, language: str, opening: str, **words: str) -> str:
    """Return the HTML of a role overview; as long as `QUANTILES` say, and perhaps empty.

    Args:
        random: Only for this text.
        organisation: Whose text it is; a part of it is the same in all texts of it.
        language: Of the rest. A language without sentences gets English.
        opening: What it begins with after that part.
        words: What the sentences may name: `city` and `department`.
    """
    target = length(random)
    if not target:
        return ""
    if language not in WORDS["sentences"]:
        language = "English"
    headings = WORDS["headings"][language]
    sentences = sentences_of(language, **words)
    shared = WORDS["shared"].format(organisation=organisation)
    parts = [INTRO, shared, "</div>"] if target > 2 * len(shared) else []
    closing = WORDS["closing"].format(organisation=organisation) if parts else ""
    parts.append(f"<p>{opening}</p>")
    written = sum(map(len, parts)) + len(closing)
    # One style for most of a text, because it comes from one place.
    style = random.choice(PARAGRAPHS) if random.randrange(4) else PARAGRAPHS[0]
    number = 0
    while written < target:
        part = f"<h3>{headings[number % 4]}</h3>" if number < len(headings) else ""
        if number % 3 == 1:
            part += html_list(random, random.sample(sentences, k=min(len(sentences), 5)))
        else:
            part += style.format(" ".join(random.sample(sentences, k=2)))
        parts.append(part)
        written += len(part)
        number += 1
    if random.randrange(100) == 0:  # rarer on the boards
        parts.append(f"<p>{random.choice(EMOJI)} Apply today\u200b!</p>")
    return "".join(parts) + closing


@cache
def sentences_of(language: str, **words: str) -> tuple[str, ...]:
    """Return the sentences of a language with their words filled in."""
    return tuple(it.format(**words) for it in WORDS["sentences"][language])


def html_list(random: Random, items: Sequence[str]) -> str:
    """Return a list in HTML, its items all of one form."""
    item = random.choice(ITEMS)
    text = "".join(item.format(it) for it in items)
    # A no-break space between a number and what it counts.
    return f"<ul>{text}</ul>".replace("14:00 ", "14:00\u00a0").replace(" CET", "\u00a0CET")


def more_items(random: Random) -> list[str]:
    """Return items that a list of any job may have."""
    plain = [it for it in WORDS["sentences"]["English"] if "{" not in it]
    return random.sample(plain, k=random.randint(1, 12))


def length(random: Random) -> int:
    """Draw a number of characters from `QUANTILES`; 0 in one case of a hundred."""
    share = random.random()
    if share < QUANTILES[0][0]:
        return 0
    (low, shorter), (high, longer) = _STEPS[bisect(QUANTILES, (share,)) - 1]
    return round(shorter + (longer - shorter) * (share - low) / (high - low))
