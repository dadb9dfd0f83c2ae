"""dbt-bigquery on bqemulator: `fake_dbt_bigquery.py ARGUMENTS`.

What bqemulator cannot do, and how this works around it:

- Check credentials: there are none.
- Name the types of JSON values as BigQuery does: they are renamed.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.bigquery import clients
from dbt.cli.main import cli
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

TYPES = """case json_type(value)
    when 'varchar' then 'string'
    when 'double' then 'number'
    when 'bigint' then 'number'
    when 'ubigint' then 'number'
    else json_type(value)
end"""


class Client(bigquery.Client):
    def query(self, query: str, *others: Any, **options: Any) -> bigquery.QueryJob:
        return super().query(query.replace("json_type(value)", TYPES), *others, **options)


clients.create_google_credentials = lambda _: AnonymousCredentials()
clients.BigQueryClient = Client

if __name__ == "__main__":
    cli()
