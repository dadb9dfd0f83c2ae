"""The tables, one file each; every section is a function from a `Bench` to a `Section`."""
