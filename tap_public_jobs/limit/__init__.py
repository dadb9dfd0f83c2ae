"""Requests within a limit, of any API: sent when it has room, tried again, read within bounds."""
