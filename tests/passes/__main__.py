"""Write the results of passes into their cases: `python -m tests.passes [share/plain ...]`."""

import sys

from tests.passes import all_cases

for case in all_cases():
    if not sys.argv[1:] or case.name in sys.argv[1:]:
        case.write_anew()
