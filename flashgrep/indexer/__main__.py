"""``python -m flashgrep.indexer``: ``indexer_process``, imported without collecting garbage."""

import gc
import os
from importlib import import_module

if __name__ == "__main__":
    gc.disable()
    # Also for an indexer that no daemon started; see ``rpc.connect.tune_numpy``.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import_module("flashgrep.indexer.indexer_process").main()
