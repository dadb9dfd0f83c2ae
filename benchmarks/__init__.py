"""What the README claims about speed and cost, measured again by one command."""
