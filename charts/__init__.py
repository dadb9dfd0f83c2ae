"""Charts of the final tables that dbt builds; `python -m charts WAREHOUSE`."""
