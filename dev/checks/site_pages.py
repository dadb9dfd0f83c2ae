"""A MkDocs hook: pages from outside docs/, and links that lead from the site to the repository."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parents[2]

OUTSIDE = {
    "README.md": "index.md",
    "pipeline/transform/README.md": "dbt-package.md",
    "queries/README.md": "queries.md",
    "dev/benchmarks/README.md": "benchmarks.md",
    "pipeline/airflow/README.md": "airflow.md",
    "pipeline/airflow/SIZING.md": "airflow-sizing.md",
    ".github/CONTRIBUTING.md": "contributing.md",
    ".github/SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files beside docs/, and the pages of the site that show them."""

LINK = re.compile(r"(\]\(|src=\")(?!\w+:|#)([^)\"#]+)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages: the README up to "Documentation", and each query with its SQL."""
    for source, page in OUTSIDE.items():
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        if source == "README.md":
            text = text.partition("\n## Documentation\n")[0]
        if source == "queries/README.md":
            for query in sorted(REPOSITORY.glob("queries/*.sql")):
                sql = query.read_text(encoding="utf-8")
                text += f"\n## {query.name}\n\n```sql\n{sql}```\n"
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the pages of the site, or at the repository."""
    pages = {page: source for source, page in OUTSIDE.items()}
    folder = dirname(pages.get(page.file.src_uri, "docs/"))

    def link(match: re.Match[str]) -> str:
        path = normpath(join(folder, match[2]))
        target = OUTSIDE.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(target) is None:
            target = f"{config.repo_url}/blob/main/{path}"
        return match[1] + target

    return LINK.sub(link, markdown)
