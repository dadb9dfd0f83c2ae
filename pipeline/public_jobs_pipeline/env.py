"""The project's file .env, and the variables of the environment, which come before it."""

import getpass
import io
import os
import re
from contextlib import suppress
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from public_jobs_pipeline.project import ELSEWHERE, TAP, Flaw, Project

ENV, EXAMPLE = Path(".env"), Path(".env.example")


def text_of(errors: str = "strict") -> str:
    """Return the text of .env; `errors` decides about bytes that are not UTF-8."""
    return ENV.read_text("utf-8-sig", errors) if ENV.exists() else ""


def values() -> dict[str, str | None]:
    """Return the variables of .env."""
    return dotenv_values(stream=io.StringIO(text_of("replace")))


def setting(name: str) -> str:
    """Return a variable of the environment or of .env; empty if it is in neither."""
    with suppress(OSError):  # `check` says so
        return os.environ.get(name) or values().get(name) or ""
    return ""


def user() -> str:
    """Return who runs this; a cluster may run an image as a user without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the second from Python 3.13 on
        return str(os.getuid())


def check() -> None:
    """Find what is missing in .env, or wrong with the file.

    Raises:
        Flaw: It has to be corrected first.
    """
    check_form()
    if names := missing():
        message = f"Write {' and '.join(names)} into {ENV.absolute()}."
        raise Flaw(message)


def check_form() -> None:
    """Find what is wrong with the file .env.

    Raises:
        Flaw: It has to be corrected first.
    """
    try:
        lines = parse_stream(io.StringIO(text_of()))
        unread = next((it.original.line for it in lines if it.error), 0)
    except UnicodeDecodeError:
        message = f"{ENV.absolute()} is not in UTF-8: save it in UTF-8."
        raise Flaw(message) from None
    except OSError as error:
        message = f"{ENV.absolute()} cannot be read by {user()}: {error.strerror}."
        raise Flaw(message) from None
    if unread:
        message = f"{ENV.absolute()}, line {unread} is not NAME=value, where JSON has no quotes."
        raise Flaw(message)


def missing() -> list[str]:
    """Return the required variables that have no value; a file may have it, as NAME_FILE says."""
    names = re.findall(r"^(\w+)=", EXAMPLE.read_text("utf-8"), re.MULTILINE)
    return [name for name in names if not (setting(name) or setting(f"{name}_FILE"))]


def fill() -> list[str]:
    """Write .env if it is missing.

    Returns:
        Else, the lines of .env.example that it lacks, with the comments before them.
    """
    example = EXAMPLE.read_text("utf-8")
    if not ENV.exists():
        ENV.touch(0o600)
        ENV.write_text(example, "utf-8")
        return []
    present, lacking, comment = text_of("replace"), list[str](), list[str]()
    for line in example.splitlines():
        comment.append(line)
        if name := re.match(r"(?:# )?([A-Z_0-9]+)=", line):
            lacking += [] if name[1] in present or name[1] in os.environ else comment
            comment = []
    return lacking


def replaced(project: Project) -> list[str]:
    """Return which variables of the environment replace the project's own, in one line at most.

    GitHub and Kubernetes give them on purpose, to a project that has no values.
    """
    own = values()
    programs = (TAP, project.target, "meltano", "dbt", "public-jobs")
    begin = tuple(f"{it}_".upper().replace("-", "_") for it in programs)
    names = [
        name
        for name, value in sorted(os.environ.items())
        if (own[name] not in {None, "", value} if name in own else name.startswith(begin))
    ]
    if not names or project.schedule in ELSEWHERE:
        return []
    return [f"The environment sets {', '.join(names)}, in place of this project's own settings."]
