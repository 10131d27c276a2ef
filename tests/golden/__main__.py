"""Compares the golden files with the text that srcdiff writes now. `--update` writes the files again."""

from __future__ import annotations

import argparse
import difflib
import sys

from tests.golden import all_golden


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the files anew")
    update = parser.parse_args().update
    changed = 0
    for golden in all_golden():
        generated = golden.generated()
        if generated == golden.output:
            continue
        changed += 1
        before, after = golden.output.splitlines(keepends=True), generated.splitlines(keepends=True)
        sys.stdout.writelines(difflib.unified_diff(before, after, golden.path.name, "written now"))
        if update:
            golden.path.write_text(golden.text(generated), encoding="utf-8")
    print(f"{changed} files {'written' if update else 'differ'}")
    return 0 if update or not changed else 1


if __name__ == "__main__":
    sys.exit(main())
