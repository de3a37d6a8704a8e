"""flashgrep in the settings of agents and editors."""

from flashgrep.api.part import Part

PART = Part(
    name="hosts",
    summary="flashgrep in the settings of agents and editors.",
    commands={
        "install": "flashgrep.parts.hosts.install_command:install",
        "install-hook": "flashgrep.parts.hosts.install_command:install_hook",
        "uninstall": "flashgrep.parts.hosts.install_command:uninstall",
    },
)
