"""Wrong settings are refused with their name, what is allowed, and never the key.

The settings are described in several places that have to agree.
"""

import re
from decimal import Decimal
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from e2e.pipeline import REPOSITORY, definition, plugin

from dev.settings import OWN, written
from tap_public_jobs import lines
from tap_public_jobs.api.client import API_PATH
from tap_public_jobs.errors import NotificationLogError, TapError
from tap_public_jobs.lines import one_line
from tap_public_jobs.tap import SETTINGS, TapPublicJobs

KEY = "pj_0123456789-secret"
NO_URL = "base_url must be a URL such as https://jobs.example.com, without quotes or spaces."
NO_END = "base_url must end before /api/public/v1, and have no user name, password, ? or #."
NO_TLS = "base_url must begin with https://, because over plain http anyone can read the key."
NO_KEY = "api_key must be the key alone, here or in api_key_file: no name, quotes, space, line b"
REMEDY = "list it under `settings` of the plugin in meltano.yml, or use --config=ENV"
PLACE = (
    "Set variables in the environment, or in .env of the working folder (TAP_PUBLIC_JOBS_API_KEY_"
    "FILE may name a file that contains the value); if one is set already, "
)
NO_REQUIRED = f"api_key is required: set TAP_PUBLIC_JOBS_API_KEY. {PLACE}{REMEDY}."
NO_AGENT = "user_agent must be one line of ASCII characters, without a space at its beginning."
GOOD = {"api_key": KEY, "base_url": "https://jobs.example.com"}


def refused(**config: Any) -> str:
    """The error for these settings, beside two good ones, as the log shows it."""
    with pytest.raises(TapError) as caught:
        TapPublicJobs(config=GOOD | config)
    until_you_act, line = one_line(str(caught.value)).split(". ", maxsplit=1)
    assert until_you_act == "Nothing more is loaded until you act"
    assert KEY not in line
    assert "pass-word" not in line
    return line


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"api_key": None}, NO_REQUIRED),
        ({"api_key": 12345}, "api_key: … is not of type 'string'."),
        ({"api_key": "Bearer abc"}, NO_KEY),
        ({"api_key": f'"{KEY}"'}, NO_KEY),
        ({"api_key": f"{KEY}ü"}, NO_KEY),
        ({"base_url": None}, "base_url is required: set TAP_PUBLIC_JOBS_BASE_URL. Set variables"),
        ({"base_url": "jobs.example.com"}, NO_URL),
        ({"base_url": "'https://a.example.com'"}, NO_URL),
        ({"base_url": 'https://a.example.com"'}, NO_URL),
        ({"base_url": "https://a.example.com/eu "}, NO_URL),
        ({"base_url": "https://a.example.com\n"}, NO_URL),
        ({"base_url": "htps://jobs.example.com"}, NO_URL),
        ({"base_url": KEY}, NO_URL),
        (
            {"api_key": "https://jobs.example.com", "base_url": KEY},
            "api_key is a URL: api_key and base_url seem to be swapped. base_url must be a URL",
        ),
        ({"base_url": "https://"}, NO_URL),
        ({"base_url": "https://:8443"}, NO_URL),
        ({"base_url": "https://jobs..example.com"}, NO_URL),
        ({"base_url": f"https://{'a' * 64}.example.com"}, NO_URL),
        ({"base_url": "https://jobs.example.com:999999"}, NO_URL),
        ({"base_url": "https://jobs.example.com:"}, NO_URL),
        ({"base_url": "http://jobs.example.com"}, NO_TLS),
        ({"base_url": "http://127.0.0.1.example.com"}, NO_TLS),
        ({"base_url": "http://localhost@a.example.com"}, NO_END),
        ({"base_url": r"http://a.example.com\.localhost"}, NO_URL),
        ({"base_url": "https://me:pass-word@a.example.com"}, NO_END),
        ({"base_url": f"https://a.example.com?key={KEY}"}, NO_END),
        ({"base_url": "https://jobs.example.com/#"}, NO_END),
        ({"base_url": f"https://a.example.com{API_PATH}/"}, NO_END),
        ({"auth_header": KEY}, "auth_header must be one of ['Authorization', 'x-api-key']."),
        (
            {"auth_header": f"Bearer {KEY}", "api_key": None},
            f"{NO_REQUIRED} auth_header must",
        ),
        ({"page_size": 0}, "page_size: 0 is less than the minimum of 1."),
        ({"rate_limit_requests": 10**30}, "rate_limit_requests: 1000000000000000000000000000000 i"),
        ({"page_size": Decimal("2.5")}, "page_size: 2.5 is not of type 'integer'."),
        ({"page_size": "1o0"}, "page_size: '1o0' is not of type 'integer'."),
        ({"rate_limit_period_seconds": 0}, "rate_limit_period_seconds: 0 is less than or equal to"),
        ({"detail_refresh": "chnaged"}, "detail_refresh must be one of ['all', 'changed', 'notif"),
        ({"detail_refresh": "notified"}, "changes_url is required: set TAP_PUBLIC_JOBS_CHANGES"),
        ({"emit_activate_version_messages": "ture"}, "emit_activate_version_messages: 'ture' is n"),
        ({"user_agent": "a\r\nb"}, NO_AGENT),
        ({"user_agent": " a"}, NO_AGENT),
        ({"user_agent": "a\n"}, NO_AGENT),
        ({"page_sise": 50}, "page_sise is not a setting: did you mean page_size?"),
        ({"baseURL": "x"}, "baseURL is not a setting: did you mean base_url?"),
        (
            {"stream_maps": {"__else__": 5}},
            "stream_maps: 5 is not valid under any of the given sch",
        ),
        ({"flattening_enabled": "yes"}, "flattening_enabled: 'yes' is not of type 'boolean'."),
        ({"flattening_enabled": True}, "flattening_max_depth is required: set TAP_PUBLIC_JOBS"),
        ({"batch_config": {"encoding": {}}}, "batch_config is not supported: remove it."),
        ({"changes_url": 5}, "changes_url: … is not of type 'string'."),
        ({"ignored_fields": ["id"]}, "ignored_fields: must not have id or publicId, without whi"),
        *(
            ({"withheld_fields": [name]}, "withheld_fields: must not have id or publicId, without")
            for name in ("id", "public_id", "additionalFields.publicId", "additional_fields.id")
        ),
        *(
            (
                {"withheld_fields": [name]},
                f"withheld_fields: there is no field {name!r}, but {meant}.",
            )
            for name, meant in (
                ("roleOverveiw", "roleOverview"),
                ("role_overveiw", "roleOverview"),
                ("Location", "location"),
                (" location", "location"),
            )
        ),
        # None of these would withhold anything.
        *(
            ({"withheld_fields": [name]}, f"withheld_fields: there is no field {name!r}, and one")
            for name in (
                *("recruiter", "", "additionalFields", "additional_fields", "firstSeenAt"),
                *("additionalFields.", "additionalFields.recruiter.name", "recruiter.name"),
            )
        ),
        ({"ignored_fields": [{}]}, "ignored_fields: {} is not of type 'string'."),
    ],
)
def test_a_wrong_setting_gets_one_clear_error(
    caplog: pytest.LogCaptureFixture, config: dict[str, Any], error: str
) -> None:
    assert refused(**config).startswith(error)
    assert caplog.messages == []


def test_a_secret_is_hidden_as_a_url_and_json_write_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a job, or what a gateway answers, may have it so."""
    monkeypatch.setattr(lines, "_secrets", [])
    lines.hide(["pj", r"pj+a/b\c"])

    assert one_line(r"pj+a/b\c, jobs/pj%2Ba%2Fb%5Cc, 'pj+a/b\\c'") == "…, jobs/…, '…'"


NO_FILE = "api_key_file must name a file that can be read: "


@pytest.mark.parametrize(
    ("text", "config", "error"),
    [
        (f"{KEY}\n", {"api_key": ""}, ""),
        (f"{KEY}\n", {}, "api_key_file and api_key are both set: remove one."),
        (f'"{KEY}"', {"api_key": ""}, NO_KEY),
        (f"TAP_PUBLIC_JOBS_API_KEY={KEY}\n", {"api_key": ""}, NO_KEY),
        ("", {"api_key": None}, NO_KEY),
        (None, {"api_key": None}, f"{NO_FILE}No such file or directory."),
        ("", {"api_key": None, "api_key_file": "."}, f"{NO_FILE}Is a directory."),
        ("\udcff", {"api_key": None}, "api_key_file must name a file in UTF-8."),
        ("", {"api_key": None, "api_key_file": KEY}, f"{NO_FILE}No such file or directory."),
        (
            "",
            {"api_key": None, "api_key_file": 5},
            "api_key_file must name a file in UTF-8. api_key_file: 5 is n",
        ),
    ],
    ids=[
        "right",
        "both",
        "quotes",
        "name",
        "empty",
        "no file",
        "folder",
        "UTF-16",
        "the key in place of its file",
        "number",
    ],
)
def test_the_key_may_be_in_a_file_whose_content_no_error_shows(
    tmp_path: Path, text: str | None, config: dict[str, Any], error: str
) -> None:
    file = tmp_path / "key"
    if text is not None:
        file.write_text(text, "utf-8", "surrogateescape")
    config = {"api_key_file": str(file)} | config

    if error:
        assert refused(**config).startswith(error)
    else:
        assert TapPublicJobs(config=GOOD | config).config["api_key"] == KEY


def test_all_wrong_settings_are_named_in_the_order_of_the_schema() -> None:
    error = refused(page_size=0, auth_header="x", base_url=None, api_key=None)

    names = ["api_key is", "base_url is", "auth_header must", "page_size: "]
    assert sorted(names, key=error.index) == names


@pytest.mark.parametrize(
    "base_url",
    [
        "https://jobs.example.com",
        "https://jobs.example.com:8443/eu/",
        "https://[2001:db8::1]:8443",
        "https://jöbs.example.com",
        "http://localhost/",
        "http://api.localhost",
        "http://127.1.2.3:8000/prefix",
        "http://[::1]:8000",
    ],
)
def test_https_is_required_but_for_this_computer(base_url: str) -> None:
    assert TapPublicJobs(config=GOOD | {"base_url": base_url}).config["base_url"] == base_url


def test_a_notification_log_is_opened_by_a_run_before_its_first_request() -> None:
    """It may not be there yet, and discovery does not need it."""
    log = {"detail_refresh": "notified", "changes_url": "postgresql:///me:pass-word@host/name"}
    tap = TapPublicJobs(config=GOOD | log)

    with pytest.raises(
        NotificationLogError, match=r"^changes_url must be sqlite:///path/to/a/file, or "
    ):
        tap.sync_all()
    assert tap.throttle.requests == 0


def test_defaults_are_those_of_the_schema() -> None:
    config = dict(TapPublicJobs(config=GOOD | {"page_size": None, "auth_header": ""}).config)

    assert config == GOOD | {
        name: it["default"] for name, it in SETTINGS.rules.items() if "default" in it
    }
    assert (config["page_size"], config["auth_header"]) == (100, "Authorization")


def test_numbers_of_a_file_are_plain_numbers() -> None:
    """The SDK reads them as decimals, which clocks and sockets do not take."""
    names = ("rate_limit_period_seconds", "request_timeout_seconds", "page_size")
    numbers = dict(zip(names, map(Decimal, ("1.5", "30.0", "50.0")), strict=True))
    read = TapPublicJobs(config=GOOD | numbers).config

    assert [repr(read[name]) for name in names] == ["1.5", "30", "50"]


class TestEnvironment:
    """`--config=ENV`."""

    @pytest.fixture(autouse=True)
    def _good(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("TAP_PUBLIC_JOBS_API_KEY", KEY)
        monkeypatch.setenv("TAP_PUBLIC_JOBS_BASE_URL", GOOD["base_url"])
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            ("page_size", "50", 50),
            ("page_size", "", 100),
            ("rate_limit_requests", "1", 1),
            ("rate_limit_period_seconds", "0.5", 0.5),
            ("emit_activate_version_messages", "FALSE", False),
            ("emit_activate_version_messages", "0", False),
            ("emit_activate_version_messages", "true", True),
            ("emit_activate_version_messages", "1", True),
            ("user_agent", "12", "12"),
            ("stream_maps", '{"jobs": null}', {"jobs": None}),
        ],
    )
    def test_a_variable_becomes_what_its_setting_needs(
        self, monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
    ) -> None:
        monkeypatch.setenv(f"TAP_PUBLIC_JOBS_{name.upper()}", text)

        assert TapPublicJobs(parse_env_config=True).config[name] == value

    def test_a_variable_wins_over_dotenv_and_that_over_the_config_file(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """`.env` of the working folder, wherever the tap is installed, and of no folder above."""
        folder = tmp_path / "project"
        folder.mkdir()
        (tmp_path / ".env").write_text("TAP_PUBLIC_JOBS_USER_AGENT=above\n")
        (folder / ".env").write_text("TAP_PUBLIC_JOBS_PAGE_SIZE=2\nTAP_PUBLIC_JOBS_BASE_URL=x\n")
        monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "")  # so that it is unset in the end
        monkeypatch.delenv("TAP_PUBLIC_JOBS_PAGE_SIZE")
        monkeypatch.chdir(folder)

        read = TapPublicJobs(config={"page_size": 9}, parse_env_config=True).config

        assert (read["base_url"], read["page_size"]) == (GOOD["base_url"], 2)
        assert "user_agent" not in read

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
    def test_dotenv_has_to_be_in_utf_8(self, encoding: str) -> None:
        """PowerShell writes UTF-16."""
        Path(".env").write_text("# für uns\nTAP_PUBLIC_JOBS_PAGE_SIZE=2\n", encoding)

        with pytest.raises(TapError, match=r" The file .env is not in UTF-8"):
            TapPublicJobs(parse_env_config=True)

    def test_dotenv_has_to_be_readable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tap_public_jobs.singer.settings.load_dotenv", denied)

        with pytest.raises(TapError, match=r" \.env cannot be read: Permission denied\."):
            TapPublicJobs(parse_env_config=True)

    def test_dotenv_may_have_a_byte_order_mark(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its first variable would be lost."""
        monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "")  # so that it is unset in the end
        monkeypatch.delenv("TAP_PUBLIC_JOBS_PAGE_SIZE")
        Path(".env").write_text("TAP_PUBLIC_JOBS_PAGE_SIZE=2\n", "utf-8-sig")

        assert TapPublicJobs(parse_env_config=True).config["page_size"] == 2

    def test_variables_of_another_plugin_are_none_of_ours(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """`tap-public-jobs-acme` inherits from `tap-public-jobs`: Meltano exports both's names."""
        for name in ("API_KEY", "PAGE_SIZE", "_SELECT", "STREAM_MAPS_JOBS", "LOGLEVEL"):
            monkeypatch.setenv(f"TAP_PUBLIC_JOBS_ACME_{name}", "many")

        read = TapPublicJobs(parse_env_config=True).config

        assert (read["api_key"], read["page_size"]) == (KEY, 100)
        # One that is called so has no settings of ours.
        monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_API_KEY", "x")
        monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "50")
        assert TapPublicJobs(parse_env_config=True).config["page_size"] == 50
        monkeypatch.delenv("TAP_PUBLIC_JOBS_PAGE_SIZE")
        TapPublicJobs(config=GOOD)
        assert caplog.messages == []


def test_text_in_the_place_of_a_number_or_a_boolean_is_read_as_one() -> None:
    """As Meltano passes it on from a variable."""
    texts = {"page_size": "50", "rate_limit_period_seconds": "0.5"}
    read = TapPublicJobs(config=GOOD | texts | {"emit_activate_version_messages": "False"}).config

    assert (read["page_size"], read["rate_limit_period_seconds"]) == (50, 0.5)
    assert read["emit_activate_version_messages"] is False


@pytest.mark.parametrize(
    ("variable", "warning"),
    [
        ("TAP_PUBLIC_JOBS_PAGE_SISE", ": did you mean page_size?"),
        ("TAP_PUBLIC_JOBS_PAGE_SIZE", f": {REMEDY}."),
        ("PUBLIC_JOBS_SCHEMAS", None),  # of dbt
        ("TAP_PUBLIC_JOBS_BASE_URL", None),  # it came in
        ("TAP_PUBLIC_JOBS_LOGLEVEL", None),  # the SDK reads it
        ("TAP_PUBLIC_JOBS_STREAM_MAPS_JOB__LOCATION", None),  # what Meltano makes of stream_maps
    ],
)
def test_a_variable_without_effect_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variable: str,
    warning: str | None,
) -> None:
    """Meltano passes on neither a misspelt setting nor one that meltano.yml does not list."""
    monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "")  # as if it were not set
    monkeypatch.setenv(variable, "INFO")
    TapPublicJobs(config=GOOD | {"shade": 5})

    *unused, last = caplog.messages
    assert unused == ([f"{variable} has no effect{warning}"] if warning else [])
    assert last == "shade is not a setting. It has no effect."


# The places that describe the settings, which have to agree.

REQUIRED: list[str] = SETTINGS.schema["required"]


@pytest.mark.parametrize("path", written(), ids=lambda it: it.name)
def test_every_place_has_what_the_schema_says(path: Path) -> None:
    """If this fails, run `uv run python dev/settings.py`."""
    assert path.read_text("utf-8") == written()[path]


def test_meltano_knows_what_the_tap_can_do_and_sets_one_default() -> None:
    """Meltano silently skips state and discovery if they are not declared."""
    extractor = plugin("extractors", "tap-public-jobs")
    reported = sorted(it.value for it in TapPublicJobs.capabilities)

    assert sorted(extractor["capabilities"]) == reported
    assert {"batch", "start-date"}.isdisjoint(reported)
    assert extractor["config"] == {"column_naming": "snake_case"}  # for warehouses


def test_env_example_activates_what_is_required() -> None:
    text = (REPOSITORY / ".env.example").read_text("utf-8")
    active = re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)

    assert active == [(f"TAP_PUBLIC_JOBS_{name.upper()}", "") for name in REQUIRED]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("extractors", "tap-public-jobs"),
        *(("loaders", f"target-{it}") for it in ("duckdb", "postgres")),
        *(("utilities", f"dbt-{it}") for it in ("duckdb", "postgres")),
    ],
)
def test_a_plugin_definition_is_what_this_project_has(kind: str, name: str) -> None:
    """But for a clone of the tap, and for the package of dbt and the command to install it.

    Values are under `config` in this project, and beside their settings in a definition.
    """
    ours, theirs = plugin(kind, name), definition(kind, name)
    values = {it["name"]: it.pop("value") for it in theirs["settings"] if "value" in it}
    if kind == "extractors":
        ours["pip_url"] = theirs["pip_url"]
    if kind == "utilities":
        assert theirs["commands"].pop("deps")["args"] == "deps"
        folder = "$MELTANO_PROJECT_ROOT/transform"
        ours["config"]["project_dir"] = folder
        ours["config"]["profiles_dir"] = f"{folder}/dbt_packages/public_jobs"
    assert values == ours.pop("config")
    assert theirs == theirs | ours


def test_the_definition_of_the_tap_has_what_the_hub_requires_and_nothing_of_a_project() -> None:
    """The schema of Meltano's Hub refuses `config`, `env` and `python`."""
    ours = definition("extractors", "tap-public-jobs")
    classifiers = metadata("tap-public-jobs").get_all("Classifier") or []
    python = "Programming Language :: Python :: 3."
    named = [it.rpartition(" ")[2] for it in classifiers if it.startswith(python)]

    required = {"name", "namespace", "variant", "label", "quality", "docs", "repo"}
    assert required <= ours.keys()
    assert not {"config", "env", "python"} & ours.keys()
    assert ours["settings_group_validation"] == [REQUIRED, ["api_key_file", "base_url"]]
    assert (named != [], ours["supported_python_versions"]) == (True, named)


@pytest.mark.parametrize("name", OWN)
def test_a_description_names_what_is_allowed(name: str) -> None:
    """`--about --format=markdown` prints nothing else; "at least 1" goes without saying."""
    rules = OWN[name]
    ends = ("minimum", "exclusiveMinimum", "maximum") if "maximum" in rules else ()
    bounds = [f"{rules[end]:,}" for end in ends if end in rules]
    words = re.findall(r"[\w,-]*\w", rules["description"])

    assert [it for it in [*bounds, *rules.get("enum", [])] if it not in words] == []
