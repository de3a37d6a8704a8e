"""``python -m flashgrep`` is the command line."""

import sys

from flashgrep.cli.launcher import main

if __name__ == "__main__":
    sys.exit(main())
