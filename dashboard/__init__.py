"""The page with pictures; `uv run dashboard/page.py WAREHOUSE`."""
