"""The project, held against the tap and its loaders."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from e2e.pipeline import Settings, environment, installed, plugin, variables
from public_jobs_pipeline.warehouse import DRIVERS
from support.portal import IN_DUCKDB, TRANSFORM, dbt_command, dbt_program

from dev.columns import PAGE, models, written

RENDER = """
import json, sys, yaml
from dbt.config.renderer import ProfileRenderer
from dbt_common.context import set_invocation_context
with open(sys.argv[1], encoding="utf-8") as file:
    output = yaml.safe_load(file)["public_jobs"]["outputs"]["postgres"]
found = []
for variables in json.loads(sys.argv[2]):
    set_invocation_context(variables)
    found.append(ProfileRenderer({}).render_data(output))
print(json.dumps(found))
"""


def test_every_file_that_columns_py_writes_is_up_to_date() -> None:
    for file, text in written().items():
        assert file.read_text("utf-8") == text


def test_the_page_for_analysts_lists_every_table() -> None:
    built = {it["name"].removeprefix("public_jobs__") for it in models()}
    page = PAGE.with_name("analysts.md").read_text("utf-8")
    cells = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    listed = re.findall(r"`(\w+)`", " ".join(cells))

    assert built
    assert built <= set(listed)


def test_the_readme_lists_every_variable_with_its_default() -> None:
    """That of grants is for `--vars` alone: dbt doesn't give a package's project file any other."""
    folders = ("macros", "models", "seeds", "snapshots")
    files = [it for folder in folders for it in (TRANSFORM / folder).rglob("*.[sy][qm]l")]
    used = {name for it in files for name in re.findall(r"\bvar\('+(\w+)'", it.read_text("utf-8"))}
    readme = (TRANSFORM / "README.md").read_text("utf-8")
    table = readme.partition("| variable | default |")[2].partition("\n\n")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    set_here = yaml.safe_load((TRANSFORM / "dbt_project.yml").read_text("utf-8"))["vars"]

    macro = (TRANSFORM / "macros/runs.sql").read_text("utf-8").partition("macro variables()")[2]
    assert used == {*listed} == {*re.findall(r"^ +'(\w+)',$", macro, re.MULTILINE)}
    assert {name: yaml.safe_load(listed[name].strip("`")) for name in set_here} == set_here


def test_both_utilities_take_the_same_dbt() -> None:
    of_duckdb, of_postgres = (
        plugin("utilities", name)["pip_url"].split() for name in ("dbt-duckdb", "dbt-postgres")
    )
    assert of_duckdb[0] == of_postgres[0]


def test_a_project_reads_its_tables_by_the_duckdb_that_writes_them() -> None:
    assert DRIVERS["duckdb"] in plugin("utilities", "dbt-duckdb")["pip_url"].split()


# What is there by now, and a view of it with what only some versions of DuckDB could write.
TURN = '''
import duckdb, os, sys
file, turn, is_killed = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "killed"
database = duckdb.connect(file)
if turn:
    query = "select number, length(long), first from seen order by number"
    print(database.execute(query).fetchall(), flush=True)  # a kill would lose it
database.execute(f"""
    create schema if not exists analytics;
    create table if not exists texts (number bigint, long varchar, short varchar);
    delete from texts where number = {turn} - 2;
    insert into texts select {turn}, repeat('texté', 2000 + {turn}), null;
    update texts set short = 'set in turn {turn}' where number < {turn};
    create or replace table analytics.made as select * from texts;
    comment on column analytics.made.long is 'turn {turn}';
    create or replace view seen as
    select *, [name || number for name in ['a', 'b']][1] as first,
        lag(short) over (partition by number order by long) as before
    from analytics.made where short is distinct from 'none';
""")
if is_killed:
    os._exit(0)
'''


@pytest.mark.e2e
@pytest.mark.parametrize("first", ["target", "dbt"])
def test_target_and_dbt_write_one_file_in_turns(first: str, tmp_path: Path) -> None:
    """With two versions of DuckDB, whichever makes the file; a kill leaves its log to the other."""
    target = installed(plugin("loaders", "target-duckdb")["pip_url"]) / "python"
    pythons = [target, dbt_command("dbt-duckdb").with_name("python")]
    for turn in range(6):
        python = pythons[(turn + (first == "dbt")) % 2]
        ending = "killed" if turn in {2, 3} else "closed"
        command = [str(python), "-c", TURN, f"{tmp_path}/warehouse.duckdb", str(turn), ending]
        seen = subprocess.check_output(command, text=True)
        there = [it for it in (turn - 2, turn - 1) if it >= 0]
        rows = [(it, 5 * (2000 + it), f"a{it}") for it in there]
        assert seen == (f"{rows}\n" if turn else "")


# Of these tables, in a file of this name, the last one that stays ends a block of metadata, and the
# next block has become free.
MANY = """
import duckdb, json, sys
columns = ", ".join(f"r + {number} as c{number}" for number in range(60))
create = "create table t{} as select {} from range(3) as it (r)"
for statements in (
    [create.format(number, columns) for number in range(70)],
    [*(f"drop table t{number}" for number in range(42, 70)), "checkpoint"],
):
    with duckdb.connect(sys.argv[1]) as database:
        for name, value in json.loads(sys.argv[2]).items():
            database.execute(f"set {name} = '{value}'")
        database.execute("; ".join(statements))
"""
READ = """
import duckdb, sys
database = duckdb.connect(sys.argv[1])
print([database.execute(f"from t{number}").fetchall()[2][59] for number in range(42)])
"""


@pytest.mark.e2e
def test_the_target_reads_what_dbt_has_left_of_many_tables(tmp_path: Path) -> None:
    profiles = yaml.safe_load((TRANSFORM / "profiles.yml").read_text("utf-8"))
    given = profiles["public_jobs"]["outputs"]["duckdb"]["settings"]
    settings = json.dumps({name: it for name, it in given.items() if "{{" not in str(it)})
    file = tmp_path / "m.duckdb"
    dbt = dbt_command("dbt-duckdb").with_name("python")
    subprocess.run([dbt, "-c", MANY, file, settings], check=True)
    target = installed(plugin("loaders", "target-duckdb")["pip_url"]) / "python"
    seen = subprocess.check_output([target, "-c", READ, file], text=True)
    assert json.loads(seen) == [2 + 59] * 42


URL = (
    "postgresql+psycopg://m%C3%A9:p%40%C3%BC%2F%2B+w%25:1@db.example.com:6543/jobs?sslmode=require"
)
RAW = "postgresql+psycopg://me:100%zz%@db.example.com/jobs"
IPV6 = "postgresql+psycopg://me:x@[2001:db8::1]:6543/jobs"
SOCKET = "postgresql+psycopg://me:0123@/jobs?host=/run/socket"
PARTS = {"host": "localhost", "port": 5433, "user": "me", "password": "100%25", "database": "jobs"}


DATABASES: list[tuple[Settings, tuple[str | int, ...]]] = [
    ({"sqlalchemy_url": URL}, ("db.example.com", 6543, "mé", "p@ü/++w%:1", "jobs", "require")),
    ({"sqlalchemy_url": SOCKET}, ("/run/socket", 5432, "me", "0123", "jobs", "prefer")),
    ({"sqlalchemy_url": RAW}, ("db.example.com", 5432, "me", "100%zz%", "jobs", "prefer")),
    ({"sqlalchemy_url": IPV6}, ("2001:db8::1", 6543, "me", "x", "jobs", "prefer")),
    (PARTS, ("localhost", 5433, "me", "100%25", "jobs", "prefer")),
]


@pytest.mark.e2e
def test_dbt_finds_the_database_of_the_loader() -> None:
    python = dbt_command("dbt-postgres").with_name("python")
    given = json.dumps([variables("target-postgres", settings) for settings, _ in DATABASES])
    profiles = TRANSFORM / "profiles.yml"
    text = subprocess.check_output([python, "-c", RENDER, profiles, given], text=True)
    found = json.loads(text)
    names = ("host", "port", "user", "password", "dbname", "sslmode")
    shown = [tuple(profile[name] for name in names) for profile in found]
    assert shown == [expected for _, expected in DATABASES]


@IN_DUCKDB
def test_an_update_that_changes_a_macro_stops_no_build(tmp_path: Path) -> None:
    """Dbt keeps what it parsed; the update changes what that is made of."""
    project, files = shutil.copytree(TRANSFORM, tmp_path / "transform"), tmp_path / "files"
    places = {"project-dir": project, "profiles-dir": project, "target-path": files}
    options = [f"--{name}={it}" for name, it in places.items()]
    shell = {name: it for name, it in environment().items() if name != "DBT_PARTIAL_PARSE"}
    dbt = dbt_program("dbt-duckdb")
    for text in ("", "{# changed #}\n"):
        macros = project / "macros" / "json.sql"
        macros.write_text(macros.read_text("utf-8") + text, "utf-8")
        ended = dbt.run(["parse", *options, f"--log-path={files}"], shell)
        assert ended.returncode == 0, ended.stdout
