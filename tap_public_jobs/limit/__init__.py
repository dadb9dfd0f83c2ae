"""Requests to any HTTP API with a rate limit.

This package knows HTTP, JSON and time; what to request, and with which key, comes in as an
argument.
It promises that no window at the server counts more requests than the limit, whatever the network's
delays; that a request ends with its answer, or with an error that says why there is none; and that
no response takes more than bounded time and memory.
The proof is in `tests/limit`: the throttle and the session behind five kinds of limit in simulated
time, and responses that no server should send over real sockets.
"""
