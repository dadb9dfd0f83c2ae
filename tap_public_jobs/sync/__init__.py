"""One run against any API that has a cheap list and an expensive detail of each job.

It knows that API as `source.Source`, a Protocol with `page` and `detail`, and neither requests nor
the SDK.
It promises that no published job is deleted or closed by mistake, that no single job or number
stops a run, and that no detail is paid for twice.
`tests/test_model.py` holds that in random histories, `tests/test_gaps.py` and `tests/sync` name
each case, and `tests/year.py` plays a year of each schedule.
"""
