"""Wrong settings are refused with their name, what is allowed, and never the key."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from pathlib import Path

KEY = "pj_0123456789-secret"
GOOD = {"api_key": KEY, "base_url": "https://jobs.example.com"}


def refused(**config: Any) -> str:
    """The error for these settings, beside two good ones."""
    with pytest.raises(PublicJobsError) as caught:
        TapPublicJobs(config=GOOD | config)
    assert KEY not in str(caught.value)
    assert "pass-word" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"api_key": None}, "api_key is required. Key of one organisation, created in the portal"),
        ({"api_key": ""}, "api_key is required."),
        ({"api_key": 12345}, "api_key: … is not of type 'string'."),
        (
            {"api_key": "Bearer abc"},
            "api_key must be the key alone, without a space, line break, umlaut or",
        ),
        (
            {"api_key": "schlüssel"},
            "api_key must be the key alone, without a space, line break, umlaut or",
        ),
        ({"base_url": None}, "base_url is required. Address of the API, without /api/public/v1, "),
        ({"base_url": "jobs.example.com"}, "base_url must be a URL such as https://jobs.example."),
        ({"base_url": "htps://jobs.example.com"}, "base_url must be a URL"),
        ({"base_url": "https://"}, "base_url must be a URL"),
        ({"base_url": "https://jobs.example.com:99999"}, "base_url must be a URL"),
        ({"base_url": "http://jobs.example.com"}, "base_url must begin with https://: over plain"),
        ({"base_url": "http://127.0.0.1.example.com"}, "base_url must begin with https://"),
        ({"base_url": "https://me:pass-word@a.example.com"}, "base_url must end before"),
        ({"base_url": "https://jobs.example.com/#"}, "base_url must end before /"),
        ({"base_url": "https://a.example.com/api/public/v1/"}, "base_url must end before "),
        ({"auth_header": "authorisation"}, "auth_header: 'authorisation' is not one of ['Authori"),
        ({"auth_header": f"Bearer {KEY}"}, "auth_header: 'Bearer …' is not one of ['Authorizatio"),
        ({"page_size": 0}, "page_size: 0 is less than the minimum of 1."),
        ({"page_size": Decimal("2.5")}, "page_size: 2.5 is not of type 'integer'."),
        ({"rate_limit_period_seconds": 0}, "rate_limit_period_seconds: 0 is less than or equal to"),
        ({"detail_refresh": "chnaged"}, "detail_refresh: 'chnaged' is not one of ['all', 'changed"),
        ({"detail_refresh": "notified"}, "changes_url is required under detail_refresh: notified."),
        ({"emit_activate_version_messages": "ture"}, "emit_activate_version_messages: 'ture' is n"),
        ({"user_agent": "a\r\nb"}, r"user_agent: 'a\r\nb' does not match '^[ -~]*$'."),
        ({"page_sise": 50}, "page_sise is not a setting: did you mean page_size?"),
        ({"flattening_enabled": "yes"}, "flattening_enabled: 'yes' is not of type 'boolean'."),
        ({"batch_config": {"encoding": {}}}, "batch_config is not supported: files carry no vers"),
        ({"changes_url": 5}, "changes_url: … is not of type 'string'."),
    ],
)
def test_a_wrong_setting_gets_one_clear_error(
    caplog: pytest.LogCaptureFixture, config: dict[str, Any], error: str
) -> None:
    assert refused(**config).startswith(error)
    assert caplog.messages == []


def test_all_wrong_settings_are_named_in_the_order_of_the_schema() -> None:
    error = refused(page_size=0, auth_header="x", base_url=None, api_key=None)

    names = ["api_key is", "base_url is", "auth_header: ", "page_size: "]
    assert sorted(names, key=error.index) == names


@pytest.mark.parametrize(
    "base_url",
    [
        "https://jobs.example.com",
        "https://jobs.example.com:8443/eu/",
        "http://api.localhost",
        "http://127.1.2.3:8000/prefix",
        "http://[::1]:8000",
    ],
)
def test_https_is_required_but_for_this_computer(base_url: str) -> None:
    assert TapPublicJobs(config=GOOD | {"base_url": base_url}).config["base_url"] == base_url


def test_an_unknown_setting_is_named_and_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    TapPublicJobs(config=GOOD | {"colour": "blue"})

    assert caplog.messages == ["colour is not a setting. It has no effect."]


def test_a_change_log_that_cannot_be_is_refused_without_its_url() -> None:
    """Any part of it may hold the password."""
    assert refused(changes_url="postgresql:///me:pass-word@host/name") == (
        "changes_url must be sqlite:///path/to/a/file, or "
        "postgresql+psycopg://user:password@host/name "
        "with an @ in the password as %40."
    )


def test_a_change_log_is_not_opened_before_the_run() -> None:
    """It may not be there yet, and discovery does not need it."""
    log = {"detail_refresh": "notified", "changes_url": "postgresql+psycopg://me:pw@192.0.2.1/name"}

    assert TapPublicJobs(config=GOOD | log).config["changes_url"] == log["changes_url"]


def test_defaults_are_those_of_the_schema() -> None:
    config = dict(TapPublicJobs(config=GOOD | {"page_size": None, "auth_header": ""}).config)

    assert config == GOOD | {
        "auth_header": "Authorization",
        "page_size": 100,
        "rate_limit_requests": 60,
        "rate_limit_period_seconds": 60,
        "max_concurrent_requests": 16,
        "request_timeout_seconds": 30,
        "detail_refresh": "all",
        "detail_max_age_days": 7,
        "column_naming": "source",
        "emit_activate_version_messages": True,
    }


def test_numbers_of_a_file_are_plain_numbers() -> None:
    """The SDK reads them as decimals, which clocks and sockets do not take."""
    numbers = {
        "rate_limit_period_seconds": Decimal("1.5"),
        "request_timeout_seconds": Decimal("30.0"),
        "page_size": Decimal("50.0"),
    }

    read = TapPublicJobs(config=GOOD | numbers).config

    assert [repr(read[name]) for name in numbers] == ["1.5", "30", "50"]


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
            ("rate_limit_period_seconds", "0.5", 0.5),
            ("emit_activate_version_messages", "FALSE", False),
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

    @pytest.mark.parametrize(
        ("name", "text", "error"),
        [
            ("page_size", "1o0", "page_size: '1o0' is not of type 'integer'."),
            ("detail_max_age_days", "NaN", "detail_max_age_days: 'NaN' is not of type 'number'."),
            ("rate_limit_period_seconds", "NaN", "rate_limit_period_seconds: 'NaN' is not of type"),
            ("detail_max_age_days", "week", "detail_max_age_days: 'week' is not of type 'number'."),
            ("emit_activate_version_messages", "ture", "emit_activate_version_messages: 'ture' is"),
            ("page_sise", "5", "page_sise is not a setting: did you mean page_size?"),
        ],
    )
    def test_what_cannot_be_read_is_an_error_that_names_the_setting(
        self, monkeypatch: pytest.MonkeyPatch, name: str, text: str, error: str
    ) -> None:
        monkeypatch.setenv(f"TAP_PUBLIC_JOBS_{name.upper()}", text)

        with pytest.raises(PublicJobsError) as caught:
            TapPublicJobs(parse_env_config=True)
        assert str(caught.value).startswith(error)

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


@pytest.mark.parametrize(
    ("variable", "warning"),
    [
        ("PAGE_SISE", "page_sise is not a setting: did you mean page_size?"),
        ("COLOUR", "colour is not a setting."),
        ("PAGE_SIZE", "run the tap with --config=ENV."),
    ],
)
def test_a_variable_without_effect_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, warning: str
) -> None:
    monkeypatch.delenv("MELTANO_EXTRACTOR_NAME", raising=False)
    monkeypatch.setenv(f"TAP_PUBLIC_JOBS_{variable}", "50")

    TapPublicJobs(config=GOOD)

    (message,) = caplog.messages
    assert message.startswith(f"TAP_PUBLIC_JOBS_{variable} has no effect: {warning}")


def test_meltano_yml_is_named_only_under_meltano(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Meltano passes on neither a misspelt setting nor one that meltano.yml does not list."""
    monkeypatch.delenv("MELTANO_EXTRACTOR_NAME", raising=False)
    monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "50")
    alone = refused(api_key=None)
    monkeypatch.setenv("MELTANO_EXTRACTOR_NAME", "tap-public-jobs")
    under_meltano = refused(api_key=None)

    assert alone.endswith(
        "If .env sets it, run the tap in the folder of that file, with --config=ENV."
    )
    assert under_meltano.endswith(
        "If .env sets it, that file must be beside meltano.yml, which must list the setting."
    )
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        "run the tap with --config=ENV.",
        "list page_size under `settings` of the plugin in meltano.yml.",
    ]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TAP_PUBLIC_JOBS_BASE_URL", "x"),  # it came in
        ("TAP_PUBLIC_JOBS_LOGLEVEL", "INFO"),  # the SDK reads it
        ("TAP_PUBLIC_JOBS__SELECT", "x"),  # an extra of Meltano's
        ("TAP_PUBLIC_JOBS_STREAM_MAPS_JOBS", "x"),  # what Meltano makes of stream_maps
        ("TAP_GITHUB_PAGE_SISE", "x"),
        ("TAP_PUBLIC_JOBS_PAGE_SIZE", ""),  # as if it were not set
    ],
)
def test_any_other_variable_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)

    TapPublicJobs(config=GOOD)

    assert caplog.messages == []
