"""Every name that selects, maps or leaves out a stream or a column names one, or is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, Pipeline, first_run
from harness import catalog_of

from tap_public_jobs.errors import SetupError
from tap_public_jobs.process import JsonFile
from tap_public_jobs.selection import usable_catalog

Json = Any

NONE = "act. stream_maps: there is no "


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        (
            {"job_detail": {"id2": "id"}},
            f"{NONE}stream 'job_detail' (did you mean 'job_details'?).",
        ),
        ({"jbo*": None}, f"{NONE}stream 'jbo*'."),
        ({"x": {"__source__": "Jobs"}}, f"{NONE}stream 'Jobs' (did you mean 'jobs'?)."),
        (
            {"jobs": {"job_title": "__NULL__"}},
            "column 'job_title' (did you mean 'jobTitle'?) in jobs.",
        ),
        ({"jobs": {"salary": None}}, f"{NONE}column 'salary' (did you mean 'minSalary'?) in"),
        ({"jobs": {"whatever": None}}, f"{NONE}column 'whatever' in jobs."),
        ({"job*": {"roleOverveiw": None}}, " in job_details or job_publications or jobs."),
        ({"x": {"__source__": "jobs", "titel": None}}, f"{NONE}column 'titel' in jobs."),
        # A column that is added in place of the one that was meant.
        (
            {"job_details": {"role_overview": "str('')"}},
            "(did you mean 'roleOverview'?) in job_det",
        ),
        ({"job_details": {"roleOverveiw": "str('')"}}, "(did you mean 'roleOverview'?) in job_det"),
        ({"jobs": {"__fliter__": "1 == 2"}}, "'__fliter__' (did you mean '__filter__'?) in jobs."),
        ({"jobs": {"__esle__": "__NULL__"}}, "'__esle__' (did you mean '__else__'?) in jobs."),
        ({"jobs": {"location": ""}}, "'location' has no expression; to leave it out, write __NULL"),
        (
            {"jobs": {"jobTitle": "fake.job()"}},
            "fake needs the package faker: add it to pip_url of",
        ),
        # A target would remove the rows of one stream when the other one is activated.
        ({"job*": {"__alias__": "all"}}, "jobs and job_publications and job_details would be"),
        ({"jobs": {"__source__": "job_details"}}, "jobs and job_details would be written as"),
        ({"x": {"__source__": "jobs", "__alias__": "y"}}, "remove __alias__; both are in jobs."),
        # A row would be there twice, once with what the map leaves out.
        ({"jobs": {"__source__": "jobs", "location": None}}, "as 'jobs', twice, with and without"),
        ({"jobs": {"__alias__": "a"}, "a": {"__source__": "jobs"}}, "as 'a', twice, with and with"),
        # Targets make one table of names that differ in case, and of what is before a hyphen.
        (
            {"jobs": {"__alias__": "JOB_DETAILS"}},
            "jobs and job_details would be written as 'JOB_DETAILS' and 'job_details', one table, ",
        ),
        ({"x-jobs": {"__source__": "job_details"}}, "as 'jobs' and 'x-jobs', one table, and rows"),
        ({"jobs": {"__alias__": "list"}}, "the __alias__ of jobs is an expression, and no name: "),
        ({"jobs": {" location": "''"}}, "column ' location' (did you mean 'location'?) in jobs."),
        # Of two maps, only the last is applied.
        ({"job*": {"location": None}, "jobs": {"x": "id"}}, "'job*' and 'jobs' both map jobs, and"),
    ],
)
def test_a_stream_map_that_names_nothing_is_refused_before_the_first_request(
    api: FakeApi, maps: Json, said: str
) -> None:
    pipeline = Pipeline(api)

    assert pipeline.run(stream_maps=maps) == []
    assert said in pipeline.error


@pytest.mark.parametrize(
    "maps",
    [
        {"jobs": {"job_title": "jobTitle", "jobTitle": "__NULL__"}},  # renamed on purpose
        {"jobs": {"jobTitles": "jobTitle.upper()", "x": "'y'"}},
        {"job*": {"publicId": "md5(publicId)"}, "x": {"__source__": "job_details", "type": None}},
        {"*": None, "jobs": {"location": None}},  # all but one
        {"jobs": {"__alias__": "listed"}, "x": {"__source__": "jobs"}},
    ],
)
def test_maps_may_add_columns_and_copies(api: FakeApi, maps: Json) -> None:
    assert first_run(api, stream_maps=maps).error == ""


def test_columns_are_those_of_the_catalog_and_of_the_naming(api: FakeApi) -> None:
    """A catalog may be older than `column_naming`, and may leave out a stream."""
    catalog = catalog_of(CONFIG)
    catalog["streams"] = [it for it in catalog["streams"] if it["stream"] == "jobs"]
    snake_case = {"column_naming": "snake_case"}
    maps = {"jobs": {"jobTitle": None}, "job_details": {"whatever": None}}

    pipeline = Pipeline(api, **snake_case)
    pipeline.run(catalog=catalog, stream_maps=maps)
    assert "jobTitle" not in pipeline.output.records("jobs")[0]
    pipeline.run(stream_maps={"jobs": {"job_title": None}})
    assert "job_title" not in pipeline.output.records("jobs")[0]
    pipeline.run(stream_maps={"jobs": {"jobTitle": None}})
    assert "'jobTitle' (did you mean 'job_title'?) in jobs" in pipeline.error


def test_a_null_that_meltano_drops_is_refused(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meltano writes settings without it, but exports it as it is in meltano.yml."""
    exported = {"jobs.location": None, "jobs.jobTitle": None, "job_publications": None}
    monkeypatch.setenv("MELTANO_EXTRACT_STREAM_MAPS", json.dumps(exported))
    pipeline = Pipeline(api)

    pipeline.run(stream_maps={"jobs": {"jobTitle": None}, "job_publications": None})
    assert "drops the null of 'location' in jobs: write __NULL__" in pipeline.error
    pipeline.run(stream_maps={"jobs": {"jobTitle": None, "location": None}})
    assert pipeline.error == ""


SELECT = "select: there is no "


@pytest.mark.parametrize(
    ("extra", "value", "said"),
    [
        ("SELECT", ["jobs.*", "job_detail.*"], f"{SELECT}stream 'job_detail' (did you mean 'job_"),
        (
            "SELECT",
            ["!jobs.job_title"],
            f"{SELECT}column 'job_title' (did you mean 'jobTitle'?) in",
        ),
        (
            "SELECT",
            ["*.roleOverveiw"],
            f"{SELECT}column 'roleOverveiw' (did you mean 'roleOverview",
        ),
        (
            "SELECT",
            ["jobs.salary.mni"],
            f"{SELECT}column 'salary.mni' (did you mean 'salary.min'?)",
        ),
        (
            "METADATA",
            {"jobs": {"titel": {"selected": False}}},
            "metadata: there is no column 'titel' in",
        ),
        (
            "METADATA",
            {"job_detail": {"selected": False}},
            "metadata: there is no stream 'job_detail' ",
        ),
        (
            "METADATA",
            {"jobs": {"salary.min": False}},
            "metadata: salary.min of jobs has no 'selected' below it, and decides nothing.",
        ),
        ("METADATA", {"job*": {"salary.min": {"selected": False}}, "jobs": {"selected": True}}, ""),
        ("SCHEMA", {"job": {"x": {}}}, "schema: there is no stream 'job' (did you mean 'jobs'?)."),
        ("SCHEMA", {"jobs": {"x": {}}}, ""),
        ("SELECT_FILTER", ["!job_detail"], "select_filter: there is no stream 'job_detail' (did y"),
        ("SELECT", ["*.*", "!*.roleOverview", "!jobs.mail*", "jobs", "jobs.salary.min"], ""),
    ],
)
def test_what_meltano_selects_exists(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    extra: str,
    value: Json,
    said: str,
) -> None:
    """Meltano only warns; a pattern with a wildcard may be for what does not exist yet."""
    catalog = catalog_of(CONFIG)
    for stream in catalog["streams"]:
        salary = {"type": "object", "properties": {"min": {"type": "number"}}}
        stream["schema"]["properties"]["salary"] = salary
    monkeypatch.setenv(f"MELTANO_EXTRACT__{extra}", json.dumps(value))

    if said:
        with pytest.raises(SetupError) as caught:
            usable_catalog(catalog)
        assert f"act. {said}" in str(caught.value)
    else:
        assert len(usable_catalog(catalog)["streams"]) == 3
        no_mail = "!jobs.mail* has no effect yet: there is no column 'mail*' in jobs."
        assert caplog.messages == ([no_mail] if "!jobs.mail*" in value else [])


def test_selected_counts_where_old_catalogs_have_it(api: FakeApi) -> None:
    """Beside the name of a stream, in its schema, and in the schema of a column, nested or not."""
    catalog = catalog_of(CONFIG)
    for stream in catalog["streams"]:
        del stream["metadata"]
    jobs, publications, details = catalog["streams"]
    columns = jobs["schema"]["properties"]
    columns["location"]["selected"] = columns["type"]["selected-by-default"] = False
    columns["currency"]["inclusion"] = "unsupported"
    columns["jobTitle"]["selected"] = True
    columns["pay"] = {"type": "object", "properties": {"min": {}, "max": {"selected": False}}}
    publications["selected"] = False
    details["schema"]["selected"] = False

    pipeline = first_run(api, usable_catalog(catalog))

    (schema,) = pipeline.output.of("SCHEMA")
    assert schema["stream"] == "jobs"
    written = schema["schema"]["properties"]
    assert {"location", "type", "currency", "jobTitle"} & written.keys() == {"jobTitle"}
    assert written["pay"]["properties"].keys() == {"min"}
    assert [row["jobTitle"] for row in pipeline.output.records("jobs")][:2] == ["Job 0", "Job 1"]


def test_metadata_below_an_array_leave_out_nothing() -> None:
    """Catalogs of other tools have them, and an array is written whole."""
    with_array = {}
    for is_selected in (True, False):
        catalog = catalog_of(CONFIG)
        jobs = next(it for it in catalog["streams"] if it["stream"] == "jobs")
        item = {"type": "object", "properties": {"a": {"type": "string"}}}
        jobs["schema"]["properties"]["tags"] = {"type": "array", "items": item}
        place = ["properties", "tags", "items", "properties", "a"]
        jobs["metadata"].append({"breadcrumb": place, "metadata": {"selected": is_selected}})
        with_array[is_selected] = catalog

    usable_catalog(with_array[True])
    with pytest.raises(ValueError, match="is not of the form"):
        usable_catalog(with_array[False])


@pytest.mark.parametrize(
    ("breadcrumb", "choice", "said"),
    [
        (["properties"], {"selected": False}, "is not of the form"),
        (["properties", "pay", "min"], {"selected": False}, "is not of the form"),
        (["properties", "location", "type"], {"selected": False}, "is not of the form"),
        (["properties", "pay.min"], {"selected": False}, "no column 'pay.min' in jobs"),
        (["properties", "location"], {"selected-by-default": "false"}, "neither true nor false"),
        (["properties", "location"], {"is_selected": False}, "decides nothing (did you mean 'sel"),
        # Not among the metadata, where old catalogs have it.
        (None, {"selcted": False}, "'selcted' in jobs decides nothing (did you mean 'selected'?)"),
        (None, {"inclusion": "no"}, "inclusion is 'no' in jobs, none of available, automatic, "),
    ],
)
def test_a_choice_of_a_catalog_that_decides_nothing_is_refused(
    breadcrumb: list[str] | None, choice: Json, said: str
) -> None:
    catalog = catalog_of(CONFIG)
    (jobs,) = [it for it in catalog["streams"] if it["stream"] == "jobs"]
    columns = jobs["schema"]["properties"]
    columns["pay"] = {"type": "object", "properties": {"min": {"type": "number"}}}
    if breadcrumb:
        jobs["metadata"].insert(0, {"breadcrumb": breadcrumb, "metadata": choice})
    else:
        columns["location"] |= choice

    with pytest.raises(ValueError, match=re.escape(said)):
        usable_catalog(catalog)


@pytest.mark.parametrize("way", ["deselected", "removed"])
def test_what_is_left_out_goes_nowhere_else_and_the_log_names_it(
    api: FakeApi, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """Neither a value that does not fit, nor what its column does not declare."""
    api.edit("3", location=7, nested={"a": 1, "b": 2}, other={"c": 3})
    catalog = catalog_of(CONFIG)
    maps: Json = {"job_publications": None}
    nested = {"type": ["object", "null"], "properties": {"a": {"type": "number"}}}
    for stream in catalog["streams"]:
        stream["schema"]["properties"] |= {"nested": nested, "other": nested}
        for entry in stream["metadata"] if way == "deselected" else ():
            if entry["breadcrumb"][-1:] == ["location"]:
                entry["metadata"]["selected"] = False
        choice = {"inclusion": "available", "selected": way == "removed"}
        stream["metadata"] += [
            {"breadcrumb": ["properties", "nested"], "metadata": choice},
            {"breadcrumb": ["properties", "other"], "metadata": choice | {"selected": True}},
        ]
    if way == "removed":
        removed = {"location": "__NULL__", "nested": None}
        maps |= {"jobs": removed, "job_details": removed}

    with caplog.at_level("INFO"):
        pipeline = first_run(api, catalog, stream_maps=maps)

    row = pipeline.output.rows("jobs")["3"]
    assert {"location", "nested"} & row.keys() == set()
    assert row["additionalFields"] == '{"other":{"c":3}}'
    left_out = "the stream job_publications; location, nested of jobs; location, nested of job_det"
    assert (
        f"Left out, as select, the catalog or stream_maps say: {left_out}ails." in caplog.messages
    )
    assert "does not fit its type" not in caplog.text


@pytest.mark.parametrize("others", [True, False])
def test_a_column_that_the_catalog_lacks_is_not_left_out_unless_the_log_says_so(
    api: FakeApi, caplog: pytest.LogCaptureFixture, others: bool
) -> None:
    """An older catalog looks like one from which somebody has taken a column."""
    catalog = catalog_of(CONFIG)
    for stream in catalog["streams"]:
        for column in ("jobTitle", *([] if others else ["additionalFields"])):
            stream["schema"]["properties"].pop(column, None)
        stream["metadata"] = [
            it
            for it in stream["metadata"]
            if it["breadcrumb"][-1:] not in (["jobTitle"], ["additionalFields"])
        ]

    with caplog.at_level("INFO"):
        pipeline = first_run(api, catalog)

    row = pipeline.output.rows("jobs")["3"]
    kept = "Kept in additionalFields, because the catalog has no column for it: jobTitle of jobs; "
    gone = (
        "Left out, as select, the catalog or stream_maps say: jobTitle, additionalFields of jobs; "
    )
    if others:
        assert row["additionalFields"] == '{"jobTitle":"Job 3"}'
    assert (kept in caplog.text, gone in caplog.text) == (others, not others)


def test_a_naming_that_the_catalog_does_not_follow_is_warned_of(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline(api, column_naming="snake_case")
    pipeline.run(catalog=catalog_of(CONFIG))

    assert "jobTitle" in pipeline.output.records("jobs")[0]
    assert "column_naming has no effect on jobs, because the catalog names" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("option", ["config", "state", "catalog"])
def test_a_file_may_have_a_byte_order_mark(tmp_path: Path, option: str, encoding: str) -> None:
    """As Windows writes it; PowerShell writes UTF-16."""
    content = catalog_of(CONFIG) if option == "catalog" else {"für": 1}
    file = tmp_path / "file.json"
    file.write_text(json.dumps(content, ensure_ascii=False), encoding)
    parameter = type("Parameter", (), {"name": option})

    read: Any = JsonFile().convert(str(file), parameter(), None)

    text = Path(read).read_text("utf-8") if option == "config" else read.read()
    assert json.loads(text).keys() == content.keys()
