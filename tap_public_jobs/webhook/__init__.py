"""Receives the API's webhooks and notes in the notification log which jobs have changed."""
