"""Singer, for any tap: what the user wrote, rows that every warehouse stores, the process."""
