"""The pages of the repository, as text."""

from e2e.pipeline import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
FILES = sorted((REPOSITORY / "docs").rglob("*.md"))
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in FILES}
FOLDERS = ["docs", "pipeline", "dev", ".github"]
EVERYWHERE = [
    *REPOSITORY.glob("*.md"),
    *(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.md*")),
]
