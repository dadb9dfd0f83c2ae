"""Receives the API's webhooks and notes in the change log which jobs have changed."""
