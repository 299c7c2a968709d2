# SPDX-License-Identifier: Apache-2.0
"""Wine for the tests of Windows: started before they are built, stopped when all have run."""

import ctypes
import subprocess
from concurrent.futures import ThreadPoolExecutor

from dev.run import presets
from dev.tree import BUILD, ENVIRONMENT, LOGS, ROOT, say

SERVER = "/usr/lib/wine/wineserver64"


def environment():
    """The environment in which the presets run Wine, with a Windows of its own inside the build folder."""
    preset = next(each for each in presets()["testPresets"] if each["name"] == "wine")
    own = {name: value.replace("${sourceDir}", str(ROOT)) for name, value in preset["environment"].items()}
    return {**ENVIRONMENT, **own}


class FixedAddresses:
    """Applies to this process and the children that it starts meanwhile. Windows has a page at a fixed address. Now and
    then Linux puts something else there, and then Wine can't start: "failed to map the shared user data". A sandbox may
    refuse the call that prevents this; then everything stays as it was."""

    personality = ctypes.CDLL(None).personality

    def __enter__(self):
        self.before = self.personality(0xFFFFFFFF)  # only asks
        self.personality(self.before | 0x0040000)  # ADDR_NO_RANDOMIZE

    def __exit__(self, *_):
        self.personality(self.before)


class Wine:
    """A Windows that starts, which takes most of a minute, while the tests are being built, and runs until all have
    ended: without its server each program would start one, which takes seconds. `ctest` alone does without this."""

    def __enter__(self):
        self.addresses = FixedAddresses()
        self.addresses.__enter__()
        (BUILD / "wine").mkdir(parents=True, exist_ok=True)
        LOGS.mkdir(parents=True, exist_ok=True)
        self.environment = environment()
        self.call([SERVER, "-p"], 60, "windows-server")
        self.pool = ThreadPoolExecutor(1)
        self.booted = self.pool.submit(self.call, ["wineboot", "-i"], 300, "windows-boot")
        return self

    def wait_until_started(self):
        self.booted.result()

    def __exit__(self, *_):
        self.wait_until_started()
        self.pool.shutdown()
        self.call([SERVER, "-k"], 60, "windows-server")
        self.addresses.__exit__()

    def call(self, command, seconds, log):
        # The output goes to a file, because a server that stays would keep a pipe open.
        with (LOGS / f"{log}.log").open("w") as output:
            try:
                subprocess.run(command, cwd=BUILD, env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT, check=False, timeout=seconds, start_new_session=True)
            except subprocess.TimeoutExpired:
                say(f"  `{' '.join(command)}` has not ended after {seconds} s")
