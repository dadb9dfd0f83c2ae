"""The project's file .env: what it says, and how the answers of the template get into it."""

import getpass
import io
import os
import re
from contextlib import suppress
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from public_jobs_pipeline.project import Flaw

ENV, ANSWERED, EXAMPLE = Path(".env"), Path(".env.new"), Path(".env.example")
# Docker and Kubernetes read only the form NAME=value.
SPELLED = re.compile(r"^ *(?:export +)? *([A-Z_0-9]+) *= *")
# NAME=value has a name; # NAME= is an optional one, without a value.
NAMED = re.compile(r"^(# )?([A-Z_0-9]+)=(.*)")


def variables(errors: str = "strict") -> dict[str, str | None]:
    """Return the variables of .env; `errors` decides about bytes that are not UTF-8."""
    text = ENV.read_text("utf-8-sig", errors) if ENV.exists() else ""
    return dotenv_values(stream=io.StringIO(text))


def setting(name: str) -> str:
    """Return a variable of the environment or of .env; empty if it is in neither."""
    with suppress(OSError):  # `check` says so
        return os.environ.get(name) or variables("replace").get(name) or ""
    return ""


def check() -> None:
    """Find what is missing in .env, or wrong with the file.

    Raises:
        Flaw: It has to be corrected first.
    """
    try:
        variables()
        unread = unread_line()
    except UnicodeDecodeError:
        message = f"{ENV.absolute()} is not in UTF-8: save it in UTF-8."
        raise Flaw(message) from None
    except OSError as error:
        message = f"{ENV.absolute()} cannot be read by {getpass.getuser()}: {error.strerror}."
        raise Flaw(message) from None
    if unread:
        message = f"{ENV.absolute()}, line {unread} is not NAME=value, where JSON has no quotes."
        raise Flaw(message)
    if names := missing():
        message = f"Write {' and '.join(names)} into {ENV.absolute()}."
        raise Flaw(message)


def unread_line() -> int:
    """Return the number of the first line that no program can read; 0 if all can be read."""
    text = ENV.read_text("utf-8-sig") if ENV.exists() else ""
    lines = parse_stream(io.StringIO(text))
    return next((it.original.line for it in lines if it.error), 0)


def missing() -> list[str]:
    """Return the required variables that have no value; a file may have it, as NAME_FILE says."""
    names = re.findall(r"^(\w+)=", EXAMPLE.read_text("utf-8"), re.MULTILINE)
    return [name for name in names if not (setting(name) or setting(f"{name}_FILE"))]


def fill() -> list[str]:
    """Write the answers in .env.new into .env, or the lines of .env.example that it lacks.

    Returns:
        What became of values that .env had before.

    Raises:
        Flaw: The file cannot be read or written.
    """
    answers = ANSWERED if ANSWERED.exists() else EXAMPLE
    try:
        text = ENV.read_text("utf-8-sig") if ENV.exists() else ""
        merged, says = merge(text, answers.read_text("utf-8"), asked=answers == ANSWERED)
        new = ENV.with_suffix(".merged")
        new.unlink(missing_ok=True)
        new.touch(0o600)
        new.write_text(merged, "utf-8")
        new.replace(ENV)
        ANSWERED.unlink(missing_ok=True)
    except UnicodeDecodeError:
        message = f"{ENV.absolute()} is not in UTF-8: save it in UTF-8."
        raise Flaw(message) from None
    return says


def merge(present: str, answers: str, *, asked: bool) -> tuple[str, list[str]]:
    """Merge answers into the text of .env: an empty answer keeps the line that is there.

    Returns:
        The new text, and what became of values that were there.
    """
    given = {it[2]: "" if it[1] else it[3] for it in map(NAMED.match, answers.splitlines()) if it}
    lines, says, there = [], [], set()
    for text in present.splitlines():
        line = SPELLED.sub(r"\1=", text)
        if found := NAMED.match(line):
            is_comment, name, old = found.groups()
            new, old = given.get(name, ""), "" if is_comment else old
            if new and new != old:
                says += [f".env: the new {name} replaces the old one."] if old else []
                line = f"{name}={new}"
            elif name in given and old and not new and asked:
                says.append(f".env: {name} is kept.")
            there.add(name)
            # A line NAME_FILE, which names a file with the key, replaces an empty line NAME.
            if old and not given.get(in_file := name.removesuffix("_FILE")):
                there.add(in_file)
        lines.append(line)
    comment: list[str] = []
    for line in answers.splitlines():
        comment.append(line)
        if found := NAMED.match(line):
            lines += [] if found[2] in there else comment
            comment = []
    return "".join(f"{line}\n" for line in lines), says
