"""What any tap on Meltano's SDK needs, and the SDK leaves open.

It knows the SDK, settings, catalogs and the process, and nothing of an API: a tap hands it the
schema of its settings, its keys, and its columns.
It promises that a wrong setting is one line with a remedy, that no field and no value is lost, that
every warehouse can store each row, and that a signal cuts no line short.
`tests/records`, `tests/test_settings.py`, `tests/test_selection.py` and `tests/test_cli.py` hold
that.
"""
