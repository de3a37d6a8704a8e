"""`bootstrap_skill`: hands an agent the skill text that teaches it these methods, once a connection."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NotRequired

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.base.errors import FlashgrepError, InvalidTrigger, NotFound, Unavailable
from flashgrep.base.registry import (
    RARE,
    Call,
    Handler,
    NameText,
    Params,
    PathText,
    handler,
)
from flashgrep.files.editor import Project, Projects
from flashgrep.files.openat import Descriptor
from flashgrep.files.system import read_all
from flashgrep.methods.common import ProjectName
from flashgrep.methods.text import Style

NAME = "bootstrap_skill"
ALIASES = ("flashgrep-init", "flashgrep_init", "fgrep-boot", "fgrep_boot")
CANONICAL = "flashgrep-init"
SKILL_PATH = "skills/SKILL.md"
PACKAGED = (
    Path(__file__).parents[1] / SKILL_PATH,  # in an installed package
    Path(__file__).parents[2] / SKILL_PATH,  # in a checkout
)
MOST_BYTES = 256 * 1024
"""A skill goes into a model's context; this is already 64,000 tokens."""
REMEDIATION = (
    "call again without allow_repo_override to use the packaged skill",
    "or make the file readable UTF-8 text of at most 256 KiB below the project's root",
)
REINSTALL = ("reinstall flashgrep: its package carries skills/SKILL.md",)
PREFERRED: dict[str, list[str]] = {
    "search": ["query"],
    "symbol": ["get_symbol", "outline"],
    "files": ["glob", "list_files"],
    "read": ["get_slice", "read_code"],
    "write": ["write_code", "batch_write_code"],
    "research": ["code_research", "search_code"],
    "health": ["stats"],
}
POLICY = [
    "search text with query, names with get_symbol",
    "find files with glob or list_files",
    "read the lines around a hit with get_slice; read_code for a symbol or a file within a budget",
    "write with write_code, several places with batch_write_code, and pass a precondition",
    "follow next or continuation for the rest of an answer",
    "an empty answer with coverage.complete true means that there is nothing to find",
]
POLICY_VERSION = "2.0"


class BootstrapParams(Params):
    """How much of the skill to send, and its source."""

    trigger: Annotated[NameText | None, RARE] = Field(
        None,
        description=f"The name the call goes by, one of {', '.join((NAME, *ALIASES))}; all equivalent.",
    )
    compact: Annotated[bool, RARE] = Field(
        False, description="Leave out the skill's text and overview."
    )
    force: Annotated[bool, RARE] = Field(
        False, description="Send the skill even if this connection already has it."
    )
    allow_repo_override: Annotated[bool, RARE] = Field(
        False, description="Use the project's own skill instead of the packaged one."
    )
    repo_override_path: Annotated[PathText, RARE] = Field(
        SKILL_PATH, min_length=1, description="Path of the project's own skill."
    )
    project: ProjectName = None


class SkillInfo(TypedDict):
    """The skill's front matter."""

    name: str
    version: str
    description: str
    author: str
    repository: str


class PolicyMetadata(TypedDict):
    """Preferred methods by task; advice only, nothing is refused for not following it."""

    policy_version: str
    policy_strength: Literal["advice"]
    policy_hash: str
    bootstrap_state: Literal["injected", "already_injected"]
    payload_source: Literal["embedded", "repo_override"]
    preferred_tool_families: dict[str, list[str]]


class BootstrapResult(TypedDict):
    """The skill, once per connection (`status`), and its metadata."""

    ok: Literal[True]
    status: Literal["injected", "already_injected"]
    canonical_trigger: str
    payload_source: Literal["embedded", "repo_override"]
    source_path: str | None
    override_requested: bool
    policy: list[str]
    policy_metadata: PolicyMetadata
    skill_hash: str
    skill_version: str
    skill_info: SkillInfo
    skill_overview: NotRequired[str]
    skill_markdown: NotRequired[str]


def render_skill(result: BootstrapResult, style: Style) -> Iterator[str]:
    """Yield what was injected, and the skill without its front matter."""
    if not style.is_person:
        facts = (
            result["status"],
            f"skill {result['skill_version']}",
            result["payload_source"],
        )
        yield f"{result['canonical_trigger']}: {', '.join(facts)}"
    yield result.get("skill_markdown", "").partition("\n---\n")[2].lstrip("\n")


@handler(NAME, *ALIASES, title="Learn to use flashgrep", render=render_skill)
async def bootstrap_skill(
    call: Call[Projects], params: BootstrapParams
) -> BootstrapResult:
    """Return the skill that teaches a coding agent flashgrep's methods with worked calls, once per connection."""
    if params.trigger not in {None, NAME, *ALIASES}:
        allowed = [NAME, *ALIASES]
        raise InvalidTrigger(
            f"invalid trigger: {params.trigger}",
            requested_trigger=params.trigger,
            allowed=allowed,
        )
    if params.allow_repo_override:
        project = await call.host.workspace(call, params.project)
        text = await run_sync(_read_override, project, params.repo_override_path)
    else:
        text = await run_sync(packaged_skill)
    digest = hashlib.sha256(text.encode()).hexdigest()
    # By hash, so that a project's changed skill counts as a new one.
    is_fresh = params.force or call.session.notes.get(NAME) != digest
    call.session.notes[NAME] = digest
    # Front matter between two lines of three dashes; missing values are empty.
    heading: dict[str, str] = {}
    if text.startswith("---\n"):
        for line in text[4:].partition("\n---")[0].splitlines():
            name, _, value = line.partition(":")
            heading[name.strip()] = value.strip()
    status: Literal["injected", "already_injected"] = (
        "injected" if is_fresh else "already_injected"
    )
    source: Literal["embedded", "repo_override"] = (
        "repo_override" if params.allow_repo_override else "embedded"
    )
    result: BootstrapResult = {
        "ok": True,
        "status": status,
        "canonical_trigger": CANONICAL,
        "payload_source": source,
        "source_path": params.repo_override_path
        if params.allow_repo_override
        else None,
        "override_requested": params.allow_repo_override,
        "policy": POLICY,
        "policy_metadata": {
            "policy_version": POLICY_VERSION,
            "policy_strength": "advice",
            "policy_hash": policy_hash(),
            "bootstrap_state": status,
            "payload_source": source,
            "preferred_tool_families": PREFERRED,
        },
        "skill_hash": digest,
        "skill_version": heading.get("version", ""),
        "skill_info": {
            "name": heading.get("name", ""),
            "version": heading.get("version", ""),
            "description": heading.get("description", ""),
            "author": heading.get("author", ""),
            "repository": heading.get("repository", ""),
        },
    }
    if is_fresh and not params.compact:
        result["skill_overview"] = overview(text)
        result["skill_markdown"] = text
    return result


def packaged_skill() -> str:
    """Return the skill that came with this package.

    Raises:
        NotFound: skill_not_found, a broken installation.
        Unavailable: skill_unreadable.

    """
    for path in PACKAGED:
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(str(path), str(error), REINSTALL) from None
    raise _missing(str(PACKAGED[0]), REINSTALL)


def overview(text: str) -> str:
    """Return the first paragraph of a skill after its title."""
    body = text.partition("\n# ")[2].partition("\n")[2]
    return " ".join(body.strip().partition("\n\n")[0].split())


def policy_hash() -> str:
    """Return a hash of the advice."""
    return hashlib.sha256(
        "\n".join([POLICY_VERSION, *POLICY, str(PREFERRED)]).encode()
    ).hexdigest()


def _read_override(project: Project, path: str) -> str:
    """Read the project's own skill; a path that leads out of its root is refused as for every other read."""
    try:
        descriptor, status, _ = project.editor.root.open_file(os.fsencode(path))
    except NotFound:
        raise _missing(path, REMEDIATION) from None
    except FlashgrepError as error:
        # Not reported as a broken skill: paths out of the project are refused as
        # everywhere else.
        if error.reason == "outside_root":
            raise
        raise _unreadable(path, error.message, REMEDIATION) from None
    try:
        with Descriptor(descriptor):
            if status.st_size > MOST_BYTES:
                raise _unreadable(
                    path,
                    f"{status.st_size} bytes, at most {MOST_BYTES} are read",
                    REMEDIATION,
                )
            return read_all(descriptor, status.st_size).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error), REMEDIATION) from None


def _missing(path: str, remediation: tuple[str, ...]) -> NotFound:
    return NotFound(
        f"no skill at {path}",
        reason="skill_not_found",
        path=path,
        remediation=list(remediation),
    )


def _unreadable(path: str, why: str, remediation: tuple[str, ...]) -> Unavailable:
    message = f"skill unreadable: {path}: {why}"
    return Unavailable(
        message,
        reason="skill_unreadable",
        path=path,
        remediation=list(remediation),
    )


HANDLERS: tuple[Handler, ...] = (bootstrap_skill,)
