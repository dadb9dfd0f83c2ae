"""A state that commit e1192805 wrote is read, and no date in it moves.

`state_8.json` has it, with the jobs that were published and the rows that had been loaded by then:
some had closed, opened and opened again; one was missing, one failed, and webhooks had named two.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import Pipeline

from tap_public_jobs.notification_log import NotificationLog

THEN = 1_800_345_660


@pytest.fixture
def before() -> dict[str, Any]:
    """What was there."""
    return dict(json.loads(Path(__file__).with_name("state_8.json").read_text("utf-8")))


@pytest.mark.parametrize("later", [60, 3_600])
def test_a_state_of_before_is_resumed_and_no_date_in_it_moves(
    before: dict[str, Any], changes_url: str, later: int
) -> None:
    """A run asks for nothing but what that one had left to do, and says of it what it would."""
    log = NotificationLog(changes_url)
    log.append({log.name: []})
    api = FakeApi(page_size=3)
    api.published = before["published"]
    pipeline = Pipeline(
        api, changes_url=changes_url, max_concurrent_requests=1, detail_refresh="changed"
    )
    pipeline.state, pipeline.now = before["state"], THEN
    api.unpublish("8")

    requests = pipeline.run(later=later)

    pages = [f"page {number}" for number in range(1, 4)]
    # 8 was missing, and is gone; 1 was fetched longest ago; 3 was named, and 7 had failed.
    assert requests == [*pages, "detail pub-8", "detail pub-1", "detail pub-3", "detail pub-7"]
    assert pipeline.error == ""
    now, then = (
        datetime.fromtimestamp(it, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        for it in (THEN + later, THEN)
    )
    rows = pipeline.output.rows("job_publications")
    assert rows.keys() == before["rows"].keys() - {"2", "9"}
    for key, row in rows.items():
        ended = {"unpublishedAt": now} if key == "8" else {"lastSeenAt": now}
        assert row == before["rows"][key] | ended
    assert before["rows"]["9"]["unpublishedAt"] == then
    assert pipeline.sync_state["undeclared"][0] == ["jobs", "salaryPeriod"]
