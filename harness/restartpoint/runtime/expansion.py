"""Prompts made from registered resources; expansion precedes storage (§5.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from restartpoint.contract import Resources
from restartpoint.errors import UnknownSkill, UnknownTemplate

__all__ = ["expanded_skill", "expanded_template"]

_PLACEHOLDER = re.compile(r"\$(@|\d+)")


def expanded_skill(resources: Resources, name: str, additional_instructions: str | None) -> str:
    """The skill's content, with further instructions below it.

    Raises:
        UnknownSkill: no skill has that name.
    """
    for skill in resources.skills:
        if skill.name == name:
            return f"{skill.content}\n\n{additional_instructions}" if additional_instructions else skill.content
    raise UnknownSkill(name)


def expanded_template(resources: Resources, name: str, arguments: Sequence[str]) -> str:
    """The template's content with ``$1``, ``$2``, ... and ``$@`` replaced; a missing argument is the empty text.

    Raises:
        UnknownTemplate: no template has that name.
    """

    def argument(match: re.Match[str]) -> str:
        if match[1] == "@":
            return " ".join(arguments)
        index = int(match[1]) - 1
        return arguments[index] if 0 <= index < len(arguments) else ""

    for template in resources.prompt_templates:
        if template.name == name:
            return _PLACEHOLDER.sub(argument, template.content)
    raise UnknownTemplate(name)
