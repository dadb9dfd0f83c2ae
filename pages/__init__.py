"""The pages in docs/ that are written by a program, and the program that runs their commands."""
