"""Random histories of an organisation and its syncs, in memory."""

from __future__ import annotations

import pytest
from hypothesis import settings
from support.histories import Histories

from tap_public_jobs.sync import run


class TestHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=20, stateful_step_count=15, deadline=None)

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """State after every second record."""
        monkeypatch.setattr(run, "FEWEST_BETWEEN_CHECKPOINTS", 2)
