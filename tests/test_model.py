"""Random histories of an organisation and its syncs, in memory.

`HISTORIES=300 uv run pytest -n 0 tests/test_model.py --hypothesis-seed=17` plays many.
"""

import os

import pytest
from hypothesis import settings
from support.histories import Histories

from tap_public_jobs.sync import run


class TestHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=int(os.environ.get("HISTORIES", "20")), stateful_step_count=15)

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """State after every second record."""
        monkeypatch.setattr(run, "FEWEST_BETWEEN_CHECKPOINTS", 2)
