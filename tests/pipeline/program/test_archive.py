"""`archive`: a file for each version of each posting, which no later run changes, and an index."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from e2e.stores import Row
from public_jobs_pipeline import archive
from public_jobs_pipeline.project import Flaw
from stand_ins import ProjectAtWork
from support.expected import Tables, make

SCHEMA = "acme_jobs_analytics"  # as the stand-in of the project says
FIRST, SECOND, END = "0001-01-01", "2026-11-03 04:00:00.5", "9999-12-31"
HTML = (
    "<h2>Cook</h2><![odd[1]]><![endif]-->For\n&amp; with us:<ul><li>soup</li><li><p>bread</p></li>"
    "</ul>"
)
QUESTIONS = '[{"id": "q", "question": "Can you cook?", "required": true}, "odd"]'
OTHERS = '{"skills": ["soup", {"a": 1e400}], "empty": [], "note": "<b>Hot</b>", "half": "\\ud83d"}'


def version(job: str, number: int, **columns: Any) -> Row:
    """A row of job_versions; the first two follow each other."""
    start, end = [(FIRST, SECOND), (SECOND, END), (FIRST, END)][number - 1]
    return {
        "organisation": "acme",
        "job_key": f"acme/{job}",
        "id": job,
        "public_id": f"public-{job}",
        "job_title": "Cook",
        "version": number if end != END or number < 3 else 1,
        "in_force_from": start,
        "in_force_until": end,
        "updated_at": f"2026-11-0{number} 05:00:00.000001",
    } | columns


def period(job: str, **columns: Any) -> Row:
    """A row of publication_periods, of a job that is open."""
    return {
        "organisation": "acme",
        "job_key": f"acme/{job}",
        "id": job,
        "period": 1,
        "opened_by": "2026-11-02 04:00",
        "built_by": "2026-11-02 04:00",
        "opened_after": "2026-11-01 04:00",
    } | columns


CLOSED = {"closed_after": "2026-11-04 04:00", "closed_by": "2026-11-05 04:00"}
ROWS: Tables = {
    "listings": [
        {"organisation": "acme", "listed_at": f"2026-11-0{day} 04:00"} for day in (1, 2, 3, 5)
    ],
    "job_versions": [
        version("a", 1, role_overview=HTML, min_salary=50000, currency="EUR"),
        version("a", 2, knockout_questions=QUESTIONS, additional_fields=OTHERS, min_salary=0.5),
        version("found", 3, job_title="Two\u2028lines\x85or three"),
        version("late", 3),
    ],
    "job_changes": [
        {"job_key": "acme/a", "changed_by": SECOND, "changed_after": "2026-11-02 04:00"},
        {"job_key": "acme/a", "changed_by": SECOND, "field": "role_overview"},
    ],
    "publication_periods": [
        period("a", **CLOSED),
        period("found", opened_after=None),
        period("late", opened_by="2026-11-01 16:00"),
        period("unseen", built_by=None, **CLOSED),
    ],
}
AGAIN = ("0 files written", "4 verified")


def made(rows: Tables, file: str = "output/warehouse-copy.duckdb") -> None:
    """Make the tables of a project."""
    Path(file).unlink(missing_ok=True)
    with duckdb.connect(file) as connection:
        connection.begin()  # one write instead of one for each table
        make(connection.execute, rows, SCHEMA)
        connection.commit()


def index(folder: str = "kept") -> list[Row]:
    return [json.loads(it) for it in Path(folder, "index.jsonl").read_bytes().splitlines()]


def files(folder: str = "kept") -> dict[str, bytes]:
    """Every file of the archive but the lock."""
    found = (it for it in Path(folder).rglob("*") if it.is_file() and it.name != ".lock")
    return {str(it.relative_to(folder)): it.read_bytes() for it in found}


def lines_of(job: str) -> list[Row]:
    return [it for it in index() if it["id"] == job]


@pytest.fixture
def kept(project: ProjectAtWork) -> ProjectAtWork:
    """A project with an archive."""
    made(ROWS)
    status, _, said = project.run("archive", "kept")
    assert (status, said.partition(".")[0]) == (0, "4 files written, 0 verified")
    return project


def test_a_file_has_all_that_a_posting_says(kept: ProjectAtWork) -> None:  # noqa: ARG001
    """As text that a person reads, and as fields; the index says by which hash it is verified."""
    first, second = ({it["version"]: it for it in lines_of("a")}[number] for number in (1, 2))
    data = Path("kept", first["file"]).read_bytes()
    posting = json.loads(data)

    assert first["sha256"] == hashlib.sha256(data).hexdigest()
    assert posting["text"] == [
        *("Cook", "organisation: acme", "job_key: acme/a", "id: a", "public_id: public-a"),
        *("min_salary: 50000", "currency: EUR"),
        *("", "Cook", "For", "& with us:", "- soup", "- bread"),
    ]
    assert posting["fields"]["role_overview"] == ROWS["job_versions"][0]["role_overview"]
    assert posting["fields"]["min_salary"] == 50000
    posting = json.loads(Path("kept", second["file"]).read_bytes())
    assert posting["questions"] == json.loads(QUESTIONS)
    assert posting["fields"]["additional_fields"] == {
        "skills": ["soup", {"a": "1e400"}],
        "empty": [],
        "note": "<b>Hot</b>",
        "half": "\ud83d",
    }
    assert posting["text"][-16:] == [
        *("", "skills:", "soup", '{"a": "1e400"}', "", "empty:", "", "note:", "Hot"),
        *("", "half:", "\ud83d", "", "questions:", "- Can you cook?", '- "odd"'),
    ]
    assert "in_force_from" not in posting["fields"]
    assert "has_salary" not in posting["fields"]


def test_the_index_has_both_bounds_of_each_date_and_says_what_may_be_missing(
    kept: ProjectAtWork,  # noqa: ARG001
) -> None:
    dates = ("changed_after", "changed_by", "replaced_after", "replaced_by")
    after, by = "2026-11-02T04:00:00.000000Z", "2026-11-03T04:00:00.500000Z"
    assert [[it[name] for name in dates] for it in lines_of("a")] == [
        [None, None, after, by],
        [after, by, None, None],
    ]
    assert lines_of("a")[0]["published"] == [
        {
            "opened_after": "2026-11-01T04:00:00.000000Z",
            "opened_by": after,
            "closed_after": "2026-11-04T04:00:00.000000Z",
            "closed_by": "2026-11-05T04:00:00.000000Z",
        }
    ]
    assert [(it["id"], it["may_be_missing_before"]) for it in index()] == [
        ("a", []),
        ("a", ["its detail may have been fetched late"]),
        ("found", ["open before the first listing"]),
        ("late", ["open before a build saw it"]),
        ("unseen", ["no build saw this period"]),
    ]
    assert lines_of("unseen")[0]["file"] is None


def test_a_later_run_writes_what_is_new_and_changes_no_file(kept: ProjectAtWork) -> None:
    """It notes in the index what closed, and what the warehouse no longer has."""
    before = files()
    assert kept.run("archive", "kept")[2].startswith(", ".join(AGAIN))
    assert files() == before

    later = [
        version("late", 1),
        version("late", 2, job_title="Chef"),
        *ROWS["job_versions"][:2],
    ]
    periods = [period("late", **CLOSED), ROWS["publication_periods"][0]]
    made(ROWS | {"job_versions": later, "publication_periods": periods})
    # What a build recorded anew is another version, such as one whose detail has come.
    assert kept.run("archive", "kept")[2].startswith("2 files written, 4 verified")

    now = files()
    assert {name: now[name] for name in before if name != archive.INDEX} == {
        name: it for name, it in before.items() if name != archive.INDEX
    }
    assert [it["in_warehouse"] for it in lines_of("found")] == [False]
    assert [(it["in_warehouse"], it["job_title"]) for it in lines_of("late")] == [
        *((True, "Cook"), (False, "Cook"), (True, "Chef"))
    ]
    assert lines_of("late")[1]["published"][0]["closed_by"] == "2026-11-05T04:00:00.000000Z"


ODD = ("../../x", "/", "..", "", "A", "a", "é/💥", "con", "x" * 400, "a\nb", "it's", "%s")


def test_names_of_files_are_safe_on_every_file_system(project: ProjectAtWork) -> None:
    versions = [version(job, 3) for job in ODD]
    made({"job_versions": versions, "publication_periods": [period(job) for job in ODD]})

    assert project.run("archive", "kept")[0] == 0

    names = [it["file"] for it in index()]
    assert sorted(it["id"] for it in index()) == sorted(ODD)
    assert {*names, archive.INDEX} == files().keys()
    assert len({name.lower() for name in names}) == len(ODD)
    for name in names:
        folder, file = Path(name).parts[1:]
        assert folder.replace("-", "").isalnum()
        assert folder.isascii()
        assert folder == folder.lower()
        assert max(len(folder), len(file)) < 100


def damage(name: str) -> None:
    Path("kept", name).write_bytes(b"{}")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (damage, "is not what was written: restore it from a backup."),
        (lambda name: Path("kept", name).unlink(), "is missing: restore it, or delete its line"),
        (
            lambda name: Path("kept", name).with_name("mine.json").write_text("{}"),
            "is no file of this archive: move it away.",
        ),
    ],
    ids=["changed", "missing", "foreign"],
)
def test_what_is_wrong_with_a_file_is_said_and_the_others_are_written(
    kept: ProjectAtWork, harm: Callable[[str], None], says: str
) -> None:
    first = index()[0]
    harm(first["file"])
    harmed = files()
    made(ROWS | {"job_versions": [*ROWS["job_versions"], version("new", 3)]})

    status = kept.run("archive", "kept")[0]

    assert status == 1
    assert says in kept.errors
    assert len(kept.errors.splitlines()) == 1
    assert [it["id"] for it in index()] == ["a", "a", "found", "late", "new", "unseen"]
    assert harmed.items() - files().items() == {(archive.INDEX, harmed[archive.INDEX])}


def test_a_run_that_was_killed_is_completed_and_a_lost_index_is_made_anew(
    kept: ProjectAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = files()
    Path("kept", archive.INDEX).unlink()
    assert kept.run("archive", "kept")[2].startswith(", ".join(AGAIN))
    assert files() == whole

    class Killed(BaseException):
        pass

    written: list[str] = []
    write = archive.Archive.write

    def until_killed(self: archive.Archive, name: str, data: bytes) -> None:
        (self.folder / ".writing").write_bytes(data[:100])
        if len(written) == 2:
            raise Killed
        write(self, name, data)
        written.append(name)

    monkeypatch.setattr(archive.Archive, "write", until_killed)
    with pytest.raises(Killed):
        kept.run("archive", "other")
    monkeypatch.setattr(archive.Archive, "write", write)
    assert files("other").keys() == {".writing", *written}
    assert kept.run("archive", "other")[2].startswith("2 files written, 2 verified")
    assert files("other") == whole


def test_what_closed_long_ago_is_deleted_and_stays_away(kept: ProjectAtWork) -> None:
    """And what the warehouse has erased is kept until then."""
    made(ROWS | {"job_versions": []})
    later = [*ROWS["listings"], {"organisation": "acme", "listed_at": "2029-11-05 04:00"}]
    said = kept.run("archive", "kept", "--keep-days", "1096")[2]
    assert said.startswith(", ".join(AGAIN))
    assert len(files()) == 5

    made(ROWS | {"listings": later})
    assert "4 verified" in kept.run("archive", "kept", "--keep-days", "1096")[2]
    made(ROWS | {"listings": [*later, {"organisation": "acme", "listed_at": "2029-11-06 04:00"}]})
    for said in ("0 files written, 4 verified, 2 deleted.", "0 files written, 2 verified."):
        assert said in kept.run("archive", "kept", "--keep-days", "1096")[2]
        assert [it["id"] for it in index()] == ["found", "late"]
        assert len(files()) == 3


@pytest.mark.parametrize(
    ("arguments", "warehouse", "says"),
    [
        (["kept"], "duckdb", "output/warehouse-copy.duckdb is missing. Run ./sync first."),
        (["kept"], "snowflake", "Tables in Snowflake and BigQuery cannot be read from here."),
        (["kept", "--warehouse", "no.duckdb"], "duckdb", "no.duckdb is not a file. Build them: "),
        (["kept", "--warehouse", "x://me:secret@h"], "duckdb", "An address other than postgresql"),
        (["calls", "--warehouse", "some.duckdb"], "duckdb", "calls: File exists. Correct it, or "),
        *(
            ([it, "--warehouse", "some.duckdb"], "duckdb", f"Line 1 of {it}/index.jsonl cannot be")
            for it in ("damaged-0", "damaged-1", "damaged-2")
        ),
    ],
)
def test_an_error_is_one_line_that_names_the_remedy(
    project: ProjectAtWork, arguments: list[str], warehouse: str, says: str
) -> None:
    project.answer(warehouse=warehouse)
    made(ROWS, "some.duckdb")
    for number, line in enumerate(("{", '{"file": 5}', '{"file": "jobs/a/b.json"}')):
        project.write(f"damaged-{number}/index.jsonl", f"{line}\n")

    assert project.run("archive", *arguments)[0] == 1
    (line,) = project.errors.splitlines()
    assert line.startswith(says)


@pytest.mark.parametrize("days", ["-1", "1000000000", "two"])
def test_a_number_of_days_that_is_none_deletes_nothing(kept: ProjectAtWork, days: str) -> None:
    before = files()
    with pytest.raises(SystemExit):
        kept.run("archive", "kept", "--keep-days", days)
    assert files() == before


def test_two_runs_at_once_do_not_write_one_archive(kept: ProjectAtWork) -> None:  # noqa: ARG001
    says = "Another run is writing kept: try again when it has ended."
    folder = Path("kept")
    with archive.locked(folder), pytest.raises(Flaw, match=says), archive.locked(folder):
        pass


def test_both_databases_give_the_same_files(kept: ProjectAtWork, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as server:
        make(lambda sql: server.execute(sql.encode()), ROWS)
        make(lambda sql: server.execute(sql.encode()), ROWS, SCHEMA)

    kept.answer(warehouse="postgres")
    kept.write(".env", f"TAP_PUBLIC_JOBS_API_KEY=x\nTARGET_POSTGRES_SQLALCHEMY_URL={database}\n")
    assert kept.run("archive", "other")[0] == 0  # by the schema of this project
    assert files("other") == files()
    address = ("--warehouse", database, "--analytics", "analytics")
    assert kept.run("archive", "kept", *address)[2].startswith(", ".join(AGAIN))
