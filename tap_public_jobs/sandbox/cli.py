"""The command `public-jobs-sandbox`."""


def main() -> None:
    """Run the command."""
