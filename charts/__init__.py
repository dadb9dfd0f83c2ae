"""The README's charts, drawn from the demo's warehouse; `python -m charts`."""
