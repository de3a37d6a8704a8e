"""``fgrep install``: flashgrep in the settings of agents and editors."""
