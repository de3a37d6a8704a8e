"""The user's own models: added by one command, measured on the user's repository, used from then on."""

from flashgrep.api.part import Part

PART = Part(
    name="models",
    summary="Models of the user's own for search by meaning: added, measured, chosen.",
    requires=("symbols", "meaning", "git"),
    commands={"model": "flashgrep.parts.models.model_command:app"},
)
