"""target-bigquery on bqemulator: `fake_bigquery.py --config FILE < MESSAGES`.

What bqemulator cannot do, and how this works around it:

- Load compressed rows (it reads none, without an error): the rows are sent as they are.
- Add a column through the API, which changes the description of a table alone: SQL adds it too.
- Set a column of a MERGE's target that is named with its table: the name goes alone.
- Check credentials: there are none. Be eventually consistent: nobody waits for that.
"""

from __future__ import annotations

import re
import time
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from target_bigquery import batch_job, core
from target_bigquery.target import TargetBigQuery

# By the types of the API; INTEGER would have 32 bits in DuckDB, of which bqemulator is made.
SQL_TYPES = {"FLOAT": "FLOAT64", "INTEGER": "INT64"}


class Client(bigquery.Client):
    def query(self, query: str, **options: Any) -> bigquery.QueryJob:
        before, update, columns = query.partition("UPDATE SET ")
        columns = re.sub(r"target\.(`\w+`) =", r"\1 =", columns)
        return super().query(before + update + columns, **options)

    def update_table(self, table: bigquery.Table, *others: Any, **options: Any) -> bigquery.Table:
        known = self.get_table(table.reference).schema
        for column in table.schema[len(known) :]:
            kind = column.field_type.upper()
            statement = f"alter table `{table.reference}` add column `{column.name}` "
            statement += SQL_TYPES.get(kind, kind)
            self.query(statement).result()
        return super().update_table(table, *others, **options)


class Uncompressed(BytesIO):
    def close(self) -> None:
        """Stay readable, as the target's own buffer does."""


def client(credentials: core.BigQueryCredentials) -> Client:
    return Client(project=credentials.project, credentials=AnonymousCredentials())


core.time = SimpleNamespace(sleep=lambda _: None, strftime=time.strftime)
batch_job.Compressor = Uncompressed
batch_job.bigquery_client_factory = core.bigquery_client_factory = client

if __name__ == "__main__":
    TargetBigQuery.cli()
