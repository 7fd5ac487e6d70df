"""The documentation names all that is public, and its pages find each other; without a build."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import benchmarks_registry
import sklearn_irt

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WRITTEN = ("_build", "auto_examples", "generated", "templates")  # by a build, or for it
PAGES = sorted(p for p in DOCS.rglob("*.rst") if not set(WRITTEN) & {*p.relative_to(DOCS).parts})
GALLERY = sorted((ROOT / "examples").glob("plot_*.py"))
# Private, or of their own kind: kernels are no promise, the command has a page.
UNLISTED = {"kernels", "cli"}


def public_modules() -> list[str]:
    names = []
    for package in (sklearn_irt, benchmarks_registry):
        names.append(package.__name__)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_") and module.name not in UNLISTED:
                names.append(f"{package.__name__}.{module.name}")
    return names


def listed() -> dict[str, list[str]]:
    """Names in the autosummaries of the API pages, by module."""
    found: dict[str, list[str]] = {}
    for page in sorted((DOCS / "api").glob("*.rst")):
        module, inside = "", False
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif line and not line.startswith(" "):
                inside = line.startswith(".. autosummary::")
            elif inside and line.strip() and not line.strip().startswith(":"):
                found.setdefault(module, []).append(line.strip())
    return found


def pages_in_toctrees() -> set[str]:
    names = set()
    for page in PAGES:
        folder = page.parent.relative_to(DOCS)
        for block in re.findall(r"\.\. toctree::\n((?:(?: +.*)?\n)+)", page.read_text()):
            for line in block.splitlines():
                entry = line.strip()
                if entry and not entry.startswith(":"):
                    names.add((folder / entry).as_posix())
    return names


def exists(page: Path, target: str) -> bool:
    """Whether the target of a link is a page, or an example that becomes one."""
    found = (page.parent / target).resolve()
    folder, name = found.relative_to(DOCS).parent.as_posix(), found.name
    if folder == "auto_examples":
        return name == "index" or (ROOT / "examples" / f"{name}.py") in GALLERY
    return found.with_suffix(".rst").is_file()


@pytest.mark.parametrize("name", public_modules())
def test_each_public_name_is_in_the_api_reference(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"an optional package is absent: {error}")
    assert module.__all__, "a public module says what is public"
    names = {public for public in module.__all__ if not public.startswith("__")}
    on_pages = listed().get(name, [])
    assert sorted(on_pages) == sorted(set(on_pages)), "a name is listed twice"
    assert set(on_pages) == names


def test_the_version_is_mentioned():
    assert "sklearn_irt.__version__" in (DOCS / "api" / "estimators.rst").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_page_is_reachable_and_its_links_lead_somewhere(page):
    name = page.relative_to(DOCS).with_suffix("").as_posix()
    assert name == "index" or name in pages_in_toctrees()
    text = page.read_text()
    links = re.findall(r":doc:`(?:[^`<]*<)?([^`<>]+)>?`", text)
    links += re.findall(r":link: (\S+)\n\s+:link-type: doc", text)
    assert [link for link in links if not exists(page, link)] == []


def test_toctrees_name_pages_that_exist():
    assert [
        name for name in sorted(pages_in_toctrees()) if not exists(DOCS / "index.rst", name)
    ] == []


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_example_has_a_title_and_needs_no_private_name(path):
    tree = ast.parse(path.read_text())
    title, underline, *rest = (ast.get_docstring(tree) or "").splitlines()
    assert set(underline) == {"="} and len(underline) >= len(title)
    assert "".join(rest).strip(), "an introduction follows the title"
    imported = [n for node in ast.walk(tree) for n in imported_names(node)]
    private = [name for name in imported if "._" in name or ".kernels" in name]
    assert private == []
    # Nothing is downloaded while the documentation is built.
    assert not any(".fetch_" in name for name in imported)


def imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []
