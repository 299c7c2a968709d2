# SPDX-License-Identifier: Apache-2.0
# Private: the public names have their types in __init__.pyi.
from typing import Any

def __getattr__(name: str) -> Any: ...
