"""The dashboard's numbers are those that plain SQL and plain Python find in the same warehouse."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest
from dashboard.weeks import FIRST, WEEK, history, load
from queries.jobs import ROWS
from queries.warehouse import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queries.warehouse import Warehouse

REPOSITORY = Path(__file__).parents[2]
