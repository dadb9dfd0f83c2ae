"""A project of the template: set it up, load and build, try again, and alert.

It knows the tap by its command, its log and its tables alone. Every path is relative to the
project's folder, which is the working folder.
"""
