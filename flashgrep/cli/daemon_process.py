"""``python -m flashgrep.cli.daemon_process OPTION N``: ``run_daemon``, imported without collecting garbage."""

import gc
import sys
from importlib import import_module

if __name__ == "__main__":
    # What modules make stays: looking for garbage among it took 80 ms of 600, in which nobody is answered.
    gc.disable()
    sys.exit(import_module("flashgrep.cli.run_daemon").main())
