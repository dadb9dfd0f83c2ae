"""Keeps a copy of each version of each posting: one file for each, and an index of all.

A file never changes once it is written. What becomes known later, such as when a posting closed, is
in the index, which each run writes anew. A file may outlive its row in the warehouse.
"""

import fcntl
import hashlib
import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from public_jobs_pipeline.project import Flaw
from public_jobs_pipeline.tables import Row, RunQuery, literal, quoted, rows

TABLES = ("job_versions", "job_changes", "publication_periods", "listings")
ABOUT = (
    "One version of one posting, as the API sent it. Times are UTC. The index has what became "
    "known after this file was written. sha256 is of the fields and the questions."
)
INDEX, JOBS = "index.jsonl", "jobs"
# What each line of the index has besides its file.
OF_A_LINE = {"job_key", "changed_by", "published", "may_be_missing_before", "sha256"}
LONGEST_NUMBER = 1000
# How many versions, with their texts, are in memory.
AT_ONCE = 200
BOUNDS = ("opened_after", "opened_by", "closed_after", "closed_by")
# The first version of a job and the current one have no other bounds in the tables.
BEGINNING, END = datetime(1, 1, 1), datetime(9999, 12, 31)  # noqa: DTZ001  # UTC without a zone
# Columns of job_versions that are not what a posting says: others say it, or dbt computes them.
NOT_CONTENT = {
    *("version", "in_force_from", "in_force_until", "updated_at", "has_salary"),
    *(f"{kind}_{end}" for kind in ("salary", "annual") for end in ("low", "middle", "high")),
}


class Archive:
    """The files in a folder, as the index has them.

    Attributes:
        lines: The line of the index for each file, by the file's name.
        verified: How many files are as they were written.
        flaws: What is wrong with others, and what to do.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: dict[str, Row] = {}
        self.verified = 0
        self.flaws: list[str] = []

    def read(self) -> None:
        """Read the index, and hold each file against it.

        Raises:
            Flaw: The index is damaged.
        """
        index = self.folder / INDEX
        # A title may have other ends of lines.
        texts = index.read_bytes().removesuffix(b"\n").split(b"\n") if index.exists() else []
        for number, text in enumerate(texts, 1):
            try:
                line = json.loads(text)
                if (name := line["file"]) is not None:
                    if not (isinstance(name, str) and line.keys() >= OF_A_LINE):
                        raise TypeError(name)  # noqa: TRY301  # is caught with those of Python
                    self.lines[name] = line
            except (ValueError, KeyError, TypeError):
                message = (
                    f"Line {number} of {index} cannot be read: restore the file, or delete it, and "
                    "the next run makes it from the other files."
                )
                raise Flaw(message) from None
        there = {str(it.relative_to(self.folder)) for it in self.folder.glob(f"{JOBS}/*/*")}
        for name, line in self.lines.items():
            if name not in there:
                self.flaws.append(
                    f"{self.folder / name} is missing: restore it, or delete its line of {INDEX}."
                )
            elif sha256((self.folder / name).read_bytes()) != line["sha256"]:
                self.flaws.append(
                    f"{self.folder / name} is not what was written: restore it from a backup."
                )
            else:
                self.verified += 1
        for name in sorted(there - self.lines.keys()):
            self._adopt(name)

    def _adopt(self, name: str) -> None:
        """Take a file that a run wrote before it was killed, or whose index is lost."""
        data = (self.folder / name).read_bytes()
        try:
            posting = json.loads(data)
            line = posting["known_when_written"] | {"file": name, "sha256": sha256(data)}
            is_whole = content_hash(posting) == posting["sha256"]
        except (ValueError, KeyError, TypeError):
            is_whole = False
        if is_whole:
            self.lines[name] = line
            self.verified += 1
        else:
            self.flaws.append(f"{self.folder / name} is no file of this archive: move it away.")

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all."""
        file, new = self.folder / name, self.folder / ".writing"
        file.parent.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(file)

    def write_index(self, others: Iterable[Row]) -> None:
        """Write the index, if it is another one than before."""
        lines = sorted([*self.lines.values(), *others], key=in_order)
        text = "".join(f"{json.dumps(it, ensure_ascii=False)}\n" for it in lines)
        index, data = self.folder / INDEX, encoded(text)
        if not index.exists() or index.read_bytes() != data:
            self.write(INDEX, data)


def archive(run: RunQuery, schema: str, folder: Path, keep_days: int | None = None) -> str:
    """Write what the archive lacks, and verify what it has.

    Args:
        run: Runs a query.
        schema: The schema of the final tables.
        folder: The folder of the archive.
        keep_days: How many days after its closing a posting is deleted; None keeps all.

    Returns:
        What was done.

    Raises:
        Flaw: A file is damaged or missing, or the folder cannot be used; all others are written.
    """
    try:
        with locked(folder):
            kept = Archive(folder)
            kept.read()
            history = History(run, schema)
            expired = history.closed_before(keep_days)
            gone = [it for it, line in kept.lines.items() if line["job_key"] in expired]
            for name in gone:
                del kept.lines[name]
            missing = [
                it
                for it in history.versions()
                if it["file"] not in kept.lines and it["job_key"] not in expired
            ]
            for first in range(0, len(missing), AT_ONCE):
                for line, content in history.contents(missing[first : first + AT_ONCE]):
                    data = file_of(line, content)
                    kept.write(line["file"], data)
                    kept.lines[line["file"]] = line | {"sha256": sha256(data)}
            for name, line in kept.lines.items():
                kept.lines[name] = history.updated(line)
            unseen = [it for it in history.unseen() if it["job_key"] not in expired]
            kept.write_index(unseen)
            # After the index, so that a run that is killed here leaves none that is missing.
            for name in gone:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        message = (
            f"{error.filename or folder}: {error.strerror}. Correct it, or name another folder."
        )
        raise Flaw(message) from None
    if kept.flaws:
        others = f" There are {len(kept.flaws) - 1:,} more." if len(kept.flaws) > 1 else ""
        message = f"{kept.flaws[0]}{others}"
        raise Flaw(message)
    doubtful = sum(bool(it["may_be_missing_before"]) for it in kept.lines.values()) + len(unseen)
    deleted = f", {len(gone):,} deleted" if gone else ""
    return (
        f"{len(missing):,} files written, {kept.verified:,} verified{deleted}. Before {doubtful:,} "
        f"versions, others may be missing: see may_be_missing_before in {folder / INDEX}."
    )


class History:
    """What the tables know of all versions and periods."""

    def __init__(self, run: RunQuery, schema: str) -> None:
        self._run = run
        self._schema = quoted(schema)
        (latest,) = self._rows("select max(listed_at) as listed_at from {}.listings")
        self.latest: datetime | None = latest["listed_at"]
        self._periods: defaultdict[str, list[Row]] = defaultdict(list)
        for period in self._rows(
            "select organisation, job_key, id, public_id, job_title, built_by, opened_after, "
            "opened_by, closed_after, closed_by from {}.publication_periods "
            "order by job_key, period"
        ):
            self._periods[period["job_key"]].append(period)
        # A change of a detail has no lower bound, because it may have been fetched late.
        self._changes = {
            (it["job_key"], it["changed_by"]): it
            for it in self._rows(
                "select job_key, changed_by, max(changed_after) as changed_after, "
                "count(*) - count(changed_after) as of_details "
                "from {}.job_changes group by job_key, changed_by"
            )
        }
        self._versions = self._rows(
            "select organisation, job_key, id, public_id, job_title, version, in_force_from, "
            "in_force_until, updated_at from {}.job_versions order by job_key, version"
        )
        self._known = {file_name(it): it for it in self._versions}

    def _rows(self, sql: str) -> list[Row]:
        return rows(self._run, sql.format(self._schema))

    def closed_before(self, days: int | None) -> set[str]:
        """Return the jobs that closed more than these days before the latest listing."""
        if days is None or self.latest is None:
            return set()
        limit = self.latest - timedelta(days=days)
        ends = {key: [it["closed_by"] or END for it in of] for key, of in self._periods.items()}
        return {job_key for job_key, closed in ends.items() if max(closed) < limit}

    def versions(self) -> Iterator[Row]:
        """Yield a line of the index for each version, without a hash."""
        for version in self._versions:
            key, start, end = (version[it] for it in ("job_key", "in_force_from", "in_force_until"))
            names = ("organisation", "job_key", "id", "public_id", "job_title", "version")
            line = {name: version[name] for name in names} | {
                "recorded_at": text_of(version["updated_at"]),
                "changed_after": self._changed_after(key, start),
                "changed_by": text_of(start if start > BEGINNING else None),
                "replaced_after": self._changed_after(key, end),
                "replaced_by": text_of(end if end < END else None),
                "published": [],
                "may_be_missing_before": self._may_be_missing(key, start, end),
                "in_warehouse": True,
                "file": file_name(version),
                "sha256": "",
            }
            yield line | {"published": self._published(line)}

    def _changed_after(self, job_key: str, by: datetime) -> str | None:
        return text_of(self._changes.get((job_key, by), {}).get("changed_after"))

    def _may_be_missing(self, job_key: str, start: datetime, end: datetime) -> list[str]:
        """Return why other versions may have been published before this one, which nobody saw."""
        reasons = []
        if self._changes.get((job_key, start), {}).get("of_details"):
            reasons.append("its detail may have been fetched late")
        for period in self._periods[job_key]:
            built = period["built_by"]
            if built and start <= built < end:
                if period["opened_after"] is None:
                    reasons.append("open before the first listing")
                if built > period["opened_by"]:
                    reasons.append("open before a build saw it")
        return list(dict.fromkeys(reasons))

    def _published(self, line: Row) -> list[Row]:
        """Return the bounds of the periods in which a version was published."""
        start, end = line["changed_by"] or "", line["replaced_by"] or "9999"
        periods = (bounds_of(it) for it in self._periods[line["job_key"]])
        return [
            it for it in periods if it["opened_by"] < end and (it["closed_by"] or "9999") > start
        ]

    def updated(self, line: Row) -> Row:
        """Return a line of the index with what is known of its end by now."""
        version = self._known.get(line["file"])
        line = line | {"in_warehouse": version is not None}
        if version:
            end = version["in_force_until"]
            line |= {
                "version": version["version"],
                "replaced_after": self._changed_after(line["job_key"], end),
                "replaced_by": text_of(end if end < END else None),
            }
        return line | {"published": self._published(line) or line["published"]}

    def unseen(self) -> Iterator[Row]:
        """Yield a line for each period that no build saw, of which nothing is known but dates."""
        for period in (it for of in self._periods.values() for it in of if not it["built_by"]):
            names = ("organisation", "job_key", "id", "public_id", "job_title")
            yield {name: period[name] for name in names} | {
                "published": [bounds_of(period)],
                "may_be_missing_before": ["no build saw this period"],
                "file": None,
            }

    def contents(self, lines: list[Row]) -> Iterator[tuple[Row, Row]]:
        """Yield each of these versions, and what the posting says in it."""
        jobs = ", ".join(sorted({literal(it["job_key"]) for it in lines}))
        by_file = {it["file"]: it for it in lines}
        sql = f"select * from {self._schema}.job_versions where job_key in ({jobs})"  # noqa: S608
        for row in rows(self._run, sql):
            if line := by_file.get(file_name(row)):
                yield line, {it: of for it, of in row.items() if it not in NOT_CONTENT}


def file_of(line: Row, content: Row) -> bytes:
    """Return the file of a version: what the posting says, as text and as fields."""
    fields = content | {"additional_fields": parsed(content["additional_fields"]) or {}}
    questions = parsed(fields.pop("knockout_questions")) or []
    posting = {
        "about": ABOUT,
        "sha256": "",
        "known_when_written": {it: of for it, of in line.items() if it not in {"file", "sha256"}},
        "text": readable(fields, questions),
        "questions": questions,
        "fields": fields,
    }
    posting["sha256"] = content_hash(posting)
    return encoded(json.dumps(posting, ensure_ascii=False, indent=2) + "\n")


def content_hash(posting: Row) -> str:
    """Return the hash of what a posting says, the same for every file that says the same."""
    content = {name: posting[name] for name in ("fields", "questions")}
    compact = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(encoded(compact))


def encoded(text: str) -> bytes:
    """Return the bytes of JSON; half a character, which only an escape can write, stays one."""
    return text.encode("utf-8", "backslashreplace")


def sha256(data: bytes) -> str:
    """Return the hash as sha256sum writes it."""
    return hashlib.sha256(data).hexdigest()


def parsed(text: str | None) -> Any:  # noqa: ANN401  # JSON
    """Return the value of a JSON text; a number that Python has no type for stays text."""

    def real(digits: str) -> float | str:
        return float(digits) if math.isfinite(float(digits)) else digits

    def whole(digits: str) -> int | str:
        return int(digits) if len(digits) < LONGEST_NUMBER else digits

    return json.loads(text, parse_float=real, parse_int=whole) if text else None


def text_of(time: datetime | None) -> str | None:
    """Return a time of the tables, which is UTC, in one form."""
    return time.isoformat(timespec="microseconds") + "Z" if time else None


def bounds_of(period: Row) -> Row:
    """Return the four bounds of a period."""
    return {it: text_of(period[it]) for it in BOUNDS}


def in_order(line: Row) -> tuple[str, str, str]:
    """Return where a line of the index belongs: by its job, and by time."""
    if line["file"]:
        return line["job_key"], line["changed_by"] or "", line["file"]
    return line["job_key"], line["published"][0]["opened_by"], ""


def file_name(version: Row) -> str:
    """Return where the file of a version is, safe on every file system.

    The hash keeps ids apart that differ only in characters that the name leaves out.
    """
    job_key = version["job_key"]
    words = re.sub(r"[^a-z0-9]+", "-", job_key.lower()).strip("-")[:60]
    folder = f"{words}-{sha256(encoded(job_key))[:16]}".lstrip("-")
    start, recorded = version["in_force_from"], version["updated_at"]
    since = f"{start:%Y%m%dT%H%M%S.%f}Z" if start > BEGINNING else "first"
    return f"{JOBS}/{folder}/{since}-recorded-{recorded:%Y%m%dT%H%M%S.%f}Z.json"


class Lines(HTMLParser):
    """The text of HTML, in lines."""

    BLOCKS = (
        *("address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "section", "table", "td", "th", "tr"),
        "ul",
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self._lines = [""]
        # Of marked sections, Python's parser knows some, and fails over others.
        self.feed(html.replace("<![", "<!-["))
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        """Begin a line at a block."""
        if tag in self.BLOCKS and (tag == "li" or self._lines[-1] != "- "):
            self._lines.append("- " if tag == "li" else "")

    def handle_endtag(self, tag: str) -> None:
        """End a line at a block."""
        self.handle_starttag(tag if tag != "li" else "p", ())

    def handle_data(self, data: str) -> None:
        """Add text to the line."""
        first, *others = data.split("\n")
        self._lines[-1] += first
        self._lines += others

    def lines(self) -> list[str]:
        """Return the lines that say something."""
        found = (" ".join(it.split()) for it in self._lines)
        return [it for it in found if it not in {"", "-"}]


def readable(fields: Row, questions: list[Any]) -> list[str]:
    """Return a posting in lines that a person reads."""
    lines = [str(fields["job_title"] or fields["public_id"])]
    for name, value in fields.items():
        is_said = name in {"job_title", "role_overview", "additional_fields"}
        if value is not None and not is_said:
            is_whole = isinstance(value, float) and value.is_integer()
            lines.append(f"{name}: {int(value) if is_whole else value}")
    lines += ["", *Lines(fields["role_overview"] or "").lines()]
    for name, value in fields["additional_fields"].items():
        values = value if isinstance(value, list) else [value]
        texts = [it if isinstance(it, str) else json.dumps(it, ensure_ascii=False) for it in values]
        lines += ["", f"{name}:", *(line for text in texts for line in Lines(text).lines())]
    if questions:
        lines += ["", "questions:"]
        for it in questions:
            asked = it.get("question") if isinstance(it, dict) else None
            lines.append(f"- {asked or json.dumps(it, ensure_ascii=False)}")
    return lines


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the archive.

    Raises:
        Flaw: Another run has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Another run is writing {folder}: try again when it has ended."
            raise Flaw(message) from None
        yield
