"""JSON schemas of the streams, one file each."""
