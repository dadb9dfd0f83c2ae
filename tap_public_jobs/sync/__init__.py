"""One run against any API that has a cheap list and a dear detail of each job.

It knows that API as `source.Source`, a Protocol with `page` and `detail`, and no HTTP or Singer.
It promises that no published job is deleted or closed by mistake, that no single job or number
stops a run, and that no detail is paid for twice.
`tests/test_model.py` holds that in random histories, `tests/test_gaps.py` names each case, and
`dev/benchmarks/operations.py` plays a year.
"""
