"""The charts of README and docs, drawn from the demo's warehouse; `python -m charts`."""
