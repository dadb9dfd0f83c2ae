"""Receives the API's webhooks, and notes in the notification log which jobs have changed.

Knows HTTP and the notification log of the tap, and nothing else of the tap.
Promises that what it answered with 2xx is on disk, and that no payload stops it.
`tests/receiver` is the proof.
"""
