"""``python -m flashgrep.cli.daemon_process OPTION N``: ``run_daemon``, imported without collecting garbage."""

import gc
import sys
from importlib import import_module

if __name__ == "__main__":
    # Objects made by imports stay: searching them for garbage took 80 of 600 ms, during
    # which nobody is answered.
    gc.disable()
    sys.exit(import_module("flashgrep.cli.run_daemon").main())
