"""``python -m flashgrep.indexer``: see ``process``.

A module of its own, since a worker that multiprocessing spawns imports the main module again unless it is ``__main__``.
"""

from flashgrep.indexer.process import main

if __name__ == "__main__":
    main()
