# SPDX-License-Identifier: Apache-2.0
"""What the script `dev` at the top of the tree does. Sets up what is missing first.

    ./dev test      everything that a change must pass, or the stages that are named
    ./dev           the list of all verbs

The verbs are in tools/dev/verbs.py, the stages of `./dev test` in tools/dev/stages.py. Most stages that build and run
tests run the presets of their names in CMakePresets.json. For these, `cmake --preset NAME`, `cmake --build --preset
NAME` and `ctest --preset NAME` do the same without this script.
"""

import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(f"dev: needs Python 3.11 or newer; this is {sys.version.split()[0]}")

sys.dont_write_bytecode = True  # the tree may be read-only
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dev.verbs import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
