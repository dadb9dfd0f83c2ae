"""Lets Python keep what it has compiled, for the tests and the many processes that they start.

Container images often forbid it, and then every process compiles its libraries anew.
"""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
