"""Imports dbt, and makes its validators of a project's files, for runs that fork from this process.

Dbt makes each of them when it first needs it, which takes a third of a parse, and of each run that
parses nothing. This file belongs to the Python of dbt. It imports no DuckDB, which starts a thread.
"""

import dbt.cli.main  # noqa: F401
from dbt.contracts.graph import nodes, unparsed
from dbt.contracts.project import Configuration, Project, ProjectFlags

for made_of in (
    Configuration,
    Project,
    ProjectFlags,
    nodes.GenericTestNode,
    nodes.HookNode,
    nodes.ModelNode,
    nodes.SeedNode,
    nodes.SingularTestNode,
    nodes.SnapshotNode,
    unparsed.UnparsedModelUpdate,
    unparsed.UnparsedSourceDefinition,
):
    made_of.json_schema()
