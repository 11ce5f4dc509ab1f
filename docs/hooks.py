"""Lets MkDocs show files outside of docs/, and links work as they do on GitHub."""

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent


def on_files(files, config):
    """Adds the project's other pages, and the pictures of results."""
    for pattern in "*.md", "results/*.md", "results/**/*.png":
        for path in ROOT.glob(pattern):
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))


def on_page_markdown(markdown, page, config, files):
    """Leads links to where the site has a file, or to the repository."""
    folder = Path(page.file.abs_src_path).parent

    def mend(match):
        path = (folder / match[1]).resolve()
        if not path.exists() or ROOT not in path.parents:  # not a file of the project
            return match[0]
        path = path.relative_to(ROOT).as_posix()
        uri = path.removeprefix("docs/")
        if files.get_file_from_path(uri):
            return "](" + os.path.relpath(uri, os.path.dirname(page.file.src_uri))
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({config.repo_url}/{kind}/main/{path}"

    return re.sub(r"\]\(([^)\s#]+)", mend, markdown)
