"""`python -m srcdiff`: the same as the command `srcdiff`."""

import sys

from srcdiff.cli import main

if __name__ == "__main__":
    sys.exit(main())
