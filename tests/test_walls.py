"""Which part of the tap may know which, and what of the SDK it uses that is not public."""

import inspect
import re
import sys
from pathlib import Path

from e2e.pipeline import REPOSITORY, run
from singer_sdk import Stream, Tap

from tap_public_jobs import streams, tap
from tap_public_jobs.singer import process
from tap_public_jobs.singer import tap as singer_tap


def test_the_contracts_between_the_modules_hold() -> None:
    """`[tool.importlinter]` in pyproject.toml says which part of the tap may know which."""
    command = Path(sys.executable).with_name("lint-imports")

    ended = run(command, "--no-cache", "--no-logo", folder=REPOSITORY)

    assert " 0 broken" in ended.succeeded().output


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
    for module in (streams, tap, singer_tap, process):
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
