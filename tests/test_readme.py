"""The pages are true, and lead somewhere."""

import json
import re
import tomllib
from decimal import Decimal
from importlib.metadata import distributions

import pytest
from e2e.pipeline import REPOSITORY
from harness import catalog_of, demo, sync
from support.pages import EVERYWHERE, FILES, PAGES, README

from dev.checks import commands


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readme_says_how_large_the_packages_are() -> None:
    """Those that `uv run` installs, without what it compiles."""
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    names = {re.split("[= ]", pin)[0] for pin in groups["pins"] if "sys_platform" not in pin}
    installed = [it for it in distributions() if it.name.lower() in names]
    size = sum(file.size or 0 for it in installed for file in it.files or ())

    (said,) = re.findall(r"first installs (\d+) MB of packages", README)
    assert int(said) == pytest.approx(size / 1e6, rel=0.1)


def test_the_index_of_the_readme_has_every_page_once() -> None:
    """The site takes its own from there."""
    index = README.partition("\n## Documentation\n")[2]
    listed = re.findall(r"\]\((docs/[\w/-]+\.md)\)", index)

    assert sorted(listed) == [path.relative_to(REPOSITORY).as_posix() for path in FILES]


def test_links_lead_somewhere() -> None:
    missing = [
        f"{path.name}: {link}"
        for path in EVERYWHERE
        for link in re.findall(r"(?:\]\(|src=\")([^)\"#]+)", path.read_text(encoding="utf-8"))
        if "://" not in link and not (path.parent / link).exists()
    ]

    assert not missing


def test_every_bash_block_is_on_a_page_whose_commands_are_run() -> None:
    """A block that is not run is `sh`, so that nobody takes it for tried."""
    pages = {path.relative_to(REPOSITORY).as_posix(): path for path in EVERYWHERE}
    with_bash = {
        name
        for name, path in pages.items()
        for block in commands.blocks(path.read_text(encoding="utf-8"))
        if path.suffix == ".md" and block.language == "bash"
    }

    assert with_bash == {*commands.ORDER}


def test_the_page_on_design_names_what_exists() -> None:
    package = REPOSITORY / "tap_public_jobs"
    modules = {path.name for path in package.glob("[a-z]*.py")}
    packages = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    table, _, proofs = PAGES["design"].partition("\n## Promises and proofs\n")
    named = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", table, re.MULTILINE))
    tests = re.findall(r"`(tests/[\w/.]+)`", proofs)

    assert named.keys() == modules | packages
    for folder in packages - {"schemas/"}:
        parts = {path.stem for path in (package / folder).glob("[a-z]*.py")}
        assert {*re.findall(r"`(\w+)`", named[folder])} == parts
    assert tests
    assert [path for path in tests if not (REPOSITORY / path).exists()] == []


def test_the_records_shown_are_real() -> None:
    """One of each stream, all of the same job; a run at 4 o'clock. A new column may be left out.

    The page shortens long texts by an ellipsis.
    """
    names = re.findall(r"^\*\*`(\w+)`\*\*", PAGES["sql"], re.MULTILINE)
    records = [json.loads(it, parse_float=Decimal) for it in blocks("json", PAGES["sql"])]
    shown = dict(zip(names, records, strict=True))
    with demo(120) as (_, settings):
        config = settings | {"column_naming": "snake_case"}
        output = sync(config, clock=lambda: 1_795_233_600.0)
        streams = [stream["tap_stream_id"] for stream in catalog_of(config)["streams"]]

    assert sorted(shown) == sorted(streams)
    for stream, record in shown.items():
        real = output.rows(stream)[record["id"]]
        for name, value in record.items():
            shortened = ".*".join(map(re.escape, str(value).split("…")))
            assert re.fullmatch(shortened, str(real[name]), re.DOTALL)
        assert list(record) == [name for name in real if name in record]


def test_the_page_on_deploying_shows_the_units_of_the_template() -> None:
    files = ("*schedule*/*}}.service*", "*schedule*/*}}.timer*")
    template = REPOSITORY / "pipeline" / "template"

    assert blocks("ini", PAGES["deploy"]) == [
        filled_in(made.read_text(encoding="utf-8")) for it in files for made in template.glob(it)
    ]


def test_the_page_on_deploying_shows_the_line_of_cron() -> None:
    (made,) = (REPOSITORY / "pipeline" / "template").glob("*schedule*/*crontab*")

    for line in "\n".join(blocks("cron", PAGES["deploy"])).splitlines():
        assert line in filled_in(made.read_text(encoding="utf-8")).splitlines()


def filled_in(text: str) -> str:
    """Return a file of the template as a project has it whose alert is mail."""
    answers = {
        "name": "my_pipeline",
        "unit": "my-pipeline",
        "folder": "/opt/public-jobs",
        "errors": "",
    }
    for name, answer in answers.items():
        text = text.replace(f"{{{{ {name} }}}}", answer)
    return text.strip() + "\n"


def test_every_message_that_has_a_heading_is_one_that_a_test_provokes() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in REPOSITORY.glob("tests/**/*.py"))
    quoted = re.findall(r"^####? `(.*)`$", PAGES["errors"], re.MULTILINE)

    assert quoted
    assert [message for message in quoted if message not in tests] == []


def test_every_line_of_the_log_on_the_page_is_one_of_the_program() -> None:
    """Between its numbers, which differ."""
    programs = [*REPOSITORY.glob("tap_public_jobs/**/*.py"), *REPOSITORY.glob("pipeline/**/*.py")]
    literals = re.sub(r'"\s+f?"', "", "\n".join(path.read_text("utf-8") for path in programs))
    table = PAGES["errors"].partition("\n## Lines of the log\n")[2].partition("\n### At the end")[0]
    quoted = re.findall(r"^\| (?:WARNING )?`(.*?)` \|", table, re.MULTILINE)
    parts = [
        part.strip(" ().") for it in quoted for part in re.split(r"\d[\d,]*(?: requests)?|\. ", it)
    ]

    assert len(quoted) > 10
    assert [it for it in parts if it and it not in literals] == []
