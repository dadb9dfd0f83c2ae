"""Which part of the tap may know which, and what of the SDK it uses that is not public."""

import inspect
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from singer_sdk import Stream, Tap

import tap_public_jobs
from tap_public_jobs import process, streams, tap

TAP = "tap_public_jobs"
FILES = sorted(Path(tap_public_jobs.__file__).parent.rglob("*.py"))

MOST_LINES = 300


@cache
def graph() -> grimp.ImportGraph:
    """What each module of the tap imports, at once, in a function or for a type checker."""
    return grimp.build_graph(TAP, include_external_packages=True, cache_dir=None)


def imports(part: str) -> set[str]:
    """What a part of the tap imports, itself left out, and without the name of the tap."""
    path, whole = f"{TAP}.{part}", graph()
    modules = {path} | whole.find_descendants(path)
    found = {it for module in modules for it in whole.find_modules_directly_imported_by(module)}
    return {it.removeprefix(f"{TAP}.") for it in found - modules}


def parts(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


# What a part must not know: `api` speaks HTTP and knows no Singer, `sync` runs without it, the
# parts of `sync` that decide do no I/O, and `records` know no HTTP.
FORBIDDEN = {
    "api": {"singer_sdk", "sync", "records", "schemas", "streams", "tap", "process"},
    "sync": {"requests", "urllib3", "singer_sdk", "streams", "tap", "records", "changelog"},
    "records": {"requests", "urllib3", "api", "streams", "tap", "changelog"},
} | {
    f"sync.{name}": {"time", "threading", "logging"}
    for name in ("outcomes", "plan", "state", "stored")
}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_a_part_does_not_know(part: str) -> None:
    assert parts(imports(part)) & FORBIDDEN[part] == set()


def test_a_run_and_its_records_know_the_api_by_one_class_and_its_values() -> None:
    inside = {it for it in imports("sync") | imports("records") if it.startswith("api.")}

    assert inside == {"api.client", "api.models"}


def test_the_receiver_is_apart() -> None:
    """It knows the notification log and the state of a run alone, and nothing else loads it."""
    whole, name = graph(), f"{TAP}.webhook"
    receiver = {name} | whole.find_descendants(name)
    known = {f"{TAP}.{part}" for part in parts(imports("webhook"))} & whole.find_children(TAP)

    assert known == {f"{TAP}.{part}" for part in ("changelog", "errors", "lines", "sync")}
    for module in receiver:
        assert whole.find_modules_that_directly_import(module) <= receiver


def test_the_tap_does_not_know_the_sandbox() -> None:
    assert "public_jobs_sandbox" not in graph().modules


def test_few_modules_know_the_sdk() -> None:
    """Settings and records use its JSON schemas, its JSON and its reader of variables."""
    importers = graph().find_modules_that_directly_import("singer_sdk")

    of_json = {f"{TAP}.{name}" for name in ("settings", "records.columns", "records.storable")}
    assert importers - of_json == {f"{TAP}.{name}" for name in ("streams", "tap", "process")}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor for types: who reads one module of a circle has to read them all."""
    whole = graph()

    TopologicalSorter(
        {module: whole.find_modules_directly_imported_by(module) for module in whole.modules}
    ).prepare()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_module_fits_in_one_reading(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= MOST_LINES


# What of the SDK is used that is not public, and why. Nothing public serves.
PRIVATE = {
    "Stream._generate_record_messages",  # to name the record that stream_maps cannot be applied to
    "Stream._stream_version",  # the version that records carry before ACTIVATE_VERSION is written
    "Stream._write_activate_version_message",  # to write it after the records, not before
    "Tap._config",  # to fill in the defaults of settings that are null or empty
    "Tap._env_var_config",  # to read `.env` in the working folder, and refuse what cannot be read
    "Tap._handle_termination",  # to end with the status of the signal; the SDK's is 0
    "Tap._validate_config",  # to name settings and remedies; the SDK's messages quote the key
}

# What is overridden although the SDK calls it final.
FINAL = {
    "Tap.run_connection_test",  # to log one line; the SDK's writes the first record of each stream
    "Tap.sync_all",  # to sum up at the end of a run, for which the SDK has no hook
}


def _private_names(cls: type) -> set[str]:
    """The private names that a class defines or uses; ruff allows them on `self` alone."""
    return {*re.findall(r"(?:\.|def )(_[a-z]\w*)", inspect.getsource(cls))}


def test_what_of_the_sdk_is_private_or_final_and_used_all_the_same_is_what_is_listed() -> None:
    private, final = set(), set()
    for module in (streams, tap, process):
        for name, cls in inspect.getmembers(module, inspect.isclass):
            kind = next((it.__name__ for it in (Stream, Tap) if issubclass(cls, it)), name)
            bases = [it for it in cls.__mro__[1:] if it.__module__.startswith("singer_sdk.")]
            for base in bases if cls.__module__ == module.__name__ else ():
                shared = _private_names(cls) & _private_names(base)
                sealed = {it for it, value in vars(base).items() if hasattr(value, "__final__")}
                private |= {f"{kind}.{it}" for it in shared}
                final |= {f"{kind}.{it}" for it in sealed & vars(cls).keys()}

    assert (private, final) == (PRIVATE, FINAL)


def test_nothing_imports_from_a_file_of_tests() -> None:
    """What tests share is in files of its own."""
    imported = re.compile(r"^\s*(?:from|import) (?:\w+\.)*test_", re.MULTILINE)
    files = Path(__file__).parent.rglob("*.py")

    assert [it for it in files if imported.search(it.read_text("utf-8"))] == []
