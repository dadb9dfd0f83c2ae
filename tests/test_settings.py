"""Wrong settings are refused with their name, what is allowed, and never the key."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import Any

import pytest
from singer_sdk.exceptions import ConfigValidationError

from tap_public_jobs import settings
from tap_public_jobs.tap import TapPublicJobs

KEY = "pj_0123456789-secret"
GOOD = {"api_key": KEY, "base_url": "https://jobs.example.com"}


def errors(**config: Any) -> list[str]:
    """The errors for these settings, beside two good ones."""
    with pytest.raises(ConfigValidationError) as caught:
        TapPublicJobs(config=GOOD | config)
    assert KEY not in str(caught.value)
    assert "pass-word" not in str(caught.value)
    return caught.value.errors


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"api_key": None}, "api_key is required: create a key in the portal under Settings → "),
        ({"api_key": ""}, "api_key is required"),
        ({"api_key": 12345}, "api_key must be text"),
        ({"api_key": "Bearer abc"}, "api_key has a space, a line break or a character that no "),
        ({"api_key": "abc\n"}, "api_key has a space, a line break or a character that no HTTP "),
        ({"api_key": "schlüssel"}, "copy the key alone, without the word Bearer"),
        ({"base_url": None}, "base_url is required: the address of the API, such as https://jobs"),
        ({"base_url": "jobs.example.com"}, "base_url is not a URL: the address of the API, such "),
        ({"base_url": "htps://jobs.example.com"}, "base_url is not a URL"),
        ({"base_url": "https://"}, "base_url is not a URL"),
        ({"base_url": "https://a..b"}, "base_url is not a URL"),
        ({"base_url": "https://*.example.com"}, "base_url is not a URL"),
        ({"base_url": f"https://{'a' * 64}.example.com"}, "base_url is not a URL"),
        ({"base_url": "https://jobs.example.com:99999"}, "base_url is not a URL"),
        ({"base_url": "https://jobs .example.com"}, "base_url is not a URL"),
        ({"base_url": "http://jobs.example.com"}, "base_url must begin with https://: over plain"),
        ({"base_url": "http://127.0.0.1.example.com"}, "base_url must begin with https://"),
        ({"base_url": "https://me:pw@jobs.example.com"}, "must not contain a user name or passw"),
        ({"base_url": "https://jobs.example.com?a=b"}, "remove everything from ? or # on"),
        ({"base_url": "https://jobs.example.com/#"}, "remove everything from ? or # on"),
        ({"base_url": "https://a.example.com/api/public/v1/"}, "must not contain /api/public/v1"),
        ({"auth_header": "authorisation"}, "auth_header must be one of Authorization, x-api-key, "),
        ({"page_size": 0}, "page_size must be a whole number from 1 to 100, not 0"),
        ({"page_size": 101}, "page_size must be a whole number from 1 to 100, not 101"),
        ({"page_size": "50"}, 'page_size must be a whole number from 1 to 100, not "50"'),
        ({"page_size": 2.5}, "page_size must be a whole number from 1 to 100, not 2.5"),
        ({"rate_limit_requests": 0}, "rate_limit_requests must be a whole number, at least 1, no"),
        ({"rate_limit_requests": True}, "rate_limit_requests must be a whole number, at least 1"),
        (
            {"rate_limit_period_seconds": 0},
            "rate_limit_period_seconds must be a number above 0, at most 86,400",
        ),
        ({"rate_limit_period_seconds": -60}, "rate_limit_period_seconds must be a number above"),
        ({"rate_limit_period_seconds": float("nan")}, "rate_limit_period_seconds must be a numb"),
        ({"max_concurrent_requests": 65}, "max_concurrent_requests must be a whole number from "),
        ({"request_timeout_seconds": "30s"}, "request_timeout_seconds must be a number above 0"),
        (
            {"detail_refresh": "chnaged"},
            'detail_refresh must be one of all, changed, notified, not "chnaged"',
        ),
        (
            {"detail_max_age_days": -1},
            "detail_max_age_days must be a number from 0 to 36,500, not -1",
        ),
        ({"emit_activate_version_messages": "ture"}, "must be true or false, not"),
        ({"user_agent": "a\r\nb"}, "user_agent has a line break or a character that no HTTP hea"),
        ({"page_sise": 50}, "page_sise is not a setting: did you mean page_size?"),
        ({"flattening_enabled": "yes"}, "flattening_enabled must be true or false"),
        ({"batch_config": {"encoding": {}}}, "batch_config is not supported: files carry no ver"),
        ({"batch_config": "x"}, "batch_config is not supported"),
        ({"changes_url": 5}, "changes_url must be text"),
        ({"changes_url": "changes.db"}, "changes_url must be sqlite:///path/to/a/file or postgres"),
    ],
)
def test_a_wrong_setting_gets_one_clear_error(config: dict[str, Any], message: str) -> None:
    (error,) = errors(**config)

    assert message in error
    assert next(iter(config)) in error


def test_all_wrong_settings_are_named_at_once() -> None:
    assert len(errors(page_size=0, auth_header="x", base_url="ftp://x")) == 3


@pytest.mark.parametrize(
    "base_url",
    [
        "https://jobs.example.com",
        "https://jobs.example.com:8443/eu/",
        "http://localhost:8000",
        "http://api.localhost",
        "http://127.0.0.1:8000/prefix",
        "http://127.1.2.3",
        "http://[::1]:8000",
    ],
)
def test_https_is_required_but_for_this_computer(base_url: str) -> None:
    assert TapPublicJobs(config=GOOD | {"base_url": base_url}).config["base_url"] == base_url


def test_an_unknown_setting_is_named_and_has_no_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    TapPublicJobs(config=GOOD | {"colour": "blue"})

    assert "Ignoring the unknown setting colour." in caplog.text


def test_batch_config_gets_one_line(caplog: pytest.LogCaptureFixture) -> None:
    errors(batch_config={})

    assert caplog.messages == []


@pytest.mark.parametrize("refresh", ["all", "changed", "notified"])
@pytest.mark.parametrize(
    "changes_url",
    [
        "changes.db",
        "mysql://me:pass-word@host/name",
        "sqlite://changes.db",
        "sqlite://",
        "sqlite:///file:changes.db",
        "postgresql://me:pass-word@word@host/name",
    ],
)
def test_the_form_of_changes_url_is_checked_in_every_mode(refresh: str, changes_url: str) -> None:
    (error,) = errors(detail_refresh=refresh, changes_url=changes_url)

    assert error == (
        "changes_url must be sqlite:///path/to/a/file or "
        "postgresql+psycopg://user:password@host/name; write an @ in the password as %40"
    )


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    (error,) = errors(changes_url="postgresql://me@localhost/name")

    remedy = "The driver of the change log's database is missing: install psycopg[binary]"
    assert error == f"changes_url cannot be used: {remedy}"


@pytest.mark.parametrize("refresh", ["all", "changed", "notified"])
@pytest.mark.parametrize(
    "changes_url", ["sqlite:///nowhere/changes.db", "postgresql+psycopg://me:pw@192.0.2.1/name"]
)
def test_a_change_log_is_not_opened_before_the_run(refresh: str, changes_url: str) -> None:
    """It may not be there yet, and discovery does not need it."""
    config = GOOD | {"detail_refresh": refresh, "changes_url": changes_url}

    assert TapPublicJobs(config=config).config["changes_url"] == changes_url


def test_notified_needs_a_change_log() -> None:
    (error,) = errors(detail_refresh="notified")

    assert error.startswith("detail_refresh: notified needs changes_url, the address of the log")


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


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("page_size", "50", 50),
        ("page_size", "5e1", 50),
        ("page_size", "fifty", "fifty"),
        ("rate_limit_period_seconds", "0.5", 0.5),
        ("emit_activate_version_messages", "FALSE", False),
        ("emit_activate_version_messages", "yes", True),
        ("emit_activate_version_messages", "flase", "flase"),
        ("user_agent", "12", "12"),
        ("stream_maps", '{"jobs": null}', {"jobs": None}),
        ("page_sise", "5", "set in the environment"),
    ],
)
def test_environment_variables_become_what_their_setting_needs(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
) -> None:
    """And stay text otherwise, so that the error can show what was written."""
    monkeypatch.setenv(f"TAP_PUBLIC_JOBS_{name.upper()}", text)
    schema = json.loads(json.dumps(TapPublicJobs.config_jsonschema))
    TapPublicJobs.append_builtin_config(schema)

    assert settings.from_environment(schema, "TAP_PUBLIC_JOBS_") == {name: value}


def test_numbers_of_a_file_are_plain_numbers() -> None:
    """The SDK reads them as decimals, which clocks and sockets do not take."""
    config = GOOD | {
        "rate_limit_period_seconds": Decimal("1.5"),
        "request_timeout_seconds": Decimal("30.0"),
        "page_size": Decimal("50.0"),
    }

    read = TapPublicJobs(config=config).config

    assert [repr(read[name]) for name in config if name not in GOOD] == ["1.5", "30", "50"]


def test_environment_variables_win_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "7")

    tap = TapPublicJobs(config=GOOD | {"page_size": 9}, parse_env_config=True)

    assert tap.config["page_size"] == 7


@pytest.mark.parametrize(
    ("variable", "warning"),
    [
        ("PAGE_SISE", "because page_sise is not a setting: did you mean TAP_PUBLIC_JOBS_PAGE_SIZE"),
        ("COLOUR", "because colour is not a setting: remove it."),
        ("PAGE_SIZE", "list page_size under `settings` of the plugin in meltano.yml, or run the "),
    ],
)
def test_a_variable_without_effect_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, warning: str
) -> None:
    """Meltano passes on neither a misspelt setting nor one that meltano.yml does not list."""
    monkeypatch.setenv(f"TAP_PUBLIC_JOBS_{variable}", "50")

    TapPublicJobs(config=GOOD)

    (message,) = caplog.messages
    assert message.startswith(f"TAP_PUBLIC_JOBS_{variable} has no effect")
    assert warning in message


@pytest.mark.parametrize(
    "variable",
    [
        "TAP_PUBLIC_JOBS_BASE_URL",  # it came in
        "TAP_PUBLIC_JOBS_LOGLEVEL",  # the SDK reads it
        "TAP_PUBLIC_JOBS__SELECT",  # an extra of Meltano's
        "TAP_PUBLIC_JOBS_STREAM_MAPS_JOBS",  # what Meltano makes of stream_maps
        "TAP_GITHUB_PAGE_SISE",
    ],
)
def test_any_other_variable_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str
) -> None:
    monkeypatch.setenv(variable, "INFO")

    TapPublicJobs(config=GOOD)

    assert "has no effect" not in caplog.text


def test_an_empty_variable_is_one_that_was_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TAP_PUBLIC_JOBS_PAGE_SIZE", "")

    TapPublicJobs(config=GOOD)

    assert "has no effect" not in caplog.text


def test_a_missing_key_names_the_usual_causes() -> None:
    (error,) = errors(api_key=None)

    assert "meltano.yml lists api_key under settings" in error
    assert ".env is beside meltano.yml" in error
