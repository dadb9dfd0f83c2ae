"""The command `uv run dev/checks/site_pages.py FOLDER`: what Zensical needs to build the site.

The pages are those of the README's index, at their own paths, so that their links to each other
stay; what else they link to is in the repository. The page of columns gets those of dbt's tables.
"""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from posixpath import dirname, join, normpath

from dev import columns

REPOSITORY = Path(__file__).parents[2]
CONFIGURATION = (REPOSITORY / "zensical.toml").read_text(encoding="utf-8")
BLOB = f"{tomllib.loads(CONFIGURATION)['project']['repo_url']}/blob/main"
INDEX = "\n## Documentation\n"
DICTIONARY = re.compile("<!-- dictionary: .* -->\n")
LINK = re.compile(r"(\]\(|src=\")(?!\w+:|#)([^)\"#]+)")


def main(folder: Path) -> None:
    """Write the pages, the pictures and the configuration."""
    index = sections()
    pages = {"README.md", *(page for _, listed in index for _, page in listed)}
    for page in pages:
        target = folder / "pages" / place(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text_of(page, pages), encoding="utf-8")
    pictures = Path("docs", "pictures")
    shutil.copytree(REPOSITORY / pictures, folder / "pages" / pictures, dirs_exist_ok=True)
    navigation: list[dict[str, object]] = [{"Home": place("README.md")}]
    navigation += [{name: [{it: place(page)} for it, page in listed]} for name, listed in index]
    # JSON's lists are TOML's; its objects are not.
    lines = re.sub(r'("[^"]*"):', r"\1 =", json.dumps(navigation, ensure_ascii=False))
    written = CONFIGURATION.replace("nav = []", f"nav = {lines}", 1)
    (folder / "zensical.toml").write_text(written, encoding="utf-8")


def sections() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sections of the README's index, with the titles and the files of their pages."""
    index = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition(INDEX)[2]
    return [
        (name, re.findall(r"\[([^]]+)\]\(([\w./-]+\.md)\)", listed))
        for name, listed in re.findall(r"^- \*\*(.+):\*\* (.+)$", index, re.MULTILINE)
    ]


def place(path: str) -> str:
    """Return where a page is on the site, which shows no hidden folder."""
    return "index.md" if path == "README.md" else path.removeprefix(".")


def text_of(page: str, pages: set[str]) -> str:
    """Return the text of a page; links to what the site lacks lead to the repository."""
    text = (REPOSITORY / page).read_text(encoding="utf-8").partition(INDEX)[0]
    text = DICTIONARY.sub(lambda _: columns.dictionary(), text)
    here = dirname(page)

    def link(match: re.Match[str]) -> str:
        path = normpath(join(here, match[2]))
        if path in pages:
            return match[1] + "../" * place(page).count("/") + place(path)
        if path.startswith("docs/pictures/"):
            return match[0]
        return f"{match[1]}{BLOB}/{path}"

    return LINK.sub(link, text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
