"""target-bigquery or dbt-bigquery, whichever is installed, on bqemulator.

`fake_bigquery.py --config FILE < MESSAGES` or `fake_bigquery.py ARGUMENTS`.
What bqemulator cannot do, and how this works around it:

- Load compressed rows (it reads none, without an error): the rows are sent as they are.
- Add a column through the API, which changes the description of a table alone: SQL adds it too.
- Set a column of a MERGE's target that is named with its table: the name goes alone.
- Name the types of JSON values as BigQuery does: they are renamed.
- Check credentials: there are none. Be eventually consistent: nobody waits for that.
"""

import re
import time
from importlib.util import find_spec
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

if find_spec("dbt"):
    from dbt.adapters.bigquery import clients
    from dbt.cli.main import cli as main
else:
    from target_bigquery import batch_job, core
    from target_bigquery.target import TargetBigQuery

    main = TargetBigQuery.cli

# By the types of the API; INTEGER would have 32 bits in DuckDB, of which bqemulator is made.
SQL_TYPES = {"FLOAT": "FLOAT64", "INTEGER": "INT64"}
JSON_TYPES = """case json_type(value)
    when 'varchar' then 'string'
    when 'double' then 'number'
    when 'bigint' then 'number'
    when 'ubigint' then 'number'
    else json_type(value)
end"""


class Client(bigquery.Client):
    def query(self, query: str, *others: Any, **options: Any) -> bigquery.QueryJob:
        before, update, columns = query.partition("UPDATE SET ")
        columns = re.sub(r"target\.(`\w+`) =", r"\1 =", columns)
        query = (before + update + columns).replace("json_type(value)", JSON_TYPES)
        return super().query(query, *others, **options)

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


def client(credentials: Any) -> Client:
    return Client(project=credentials.project, credentials=AnonymousCredentials())


if find_spec("dbt"):
    clients.create_google_credentials = lambda _: AnonymousCredentials()
    clients.BigQueryClient = Client
else:
    core.time = SimpleNamespace(sleep=lambda _: None, strftime=time.strftime)
    batch_job.Compressor = Uncompressed
    batch_job.bigquery_client_factory = core.bigquery_client_factory = client

if __name__ == "__main__":
    main()
