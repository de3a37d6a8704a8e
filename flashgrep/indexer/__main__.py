"""``python -m flashgrep.indexer``: see ``process``.

A separate module, since a worker spawned by multiprocessing imports the main module again unless it is ``__main__``.
"""

from flashgrep.indexer.indexer_process import main

if __name__ == "__main__":
    main()
