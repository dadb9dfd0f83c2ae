"""The API page as a running server: something to try the tap on without an account."""
