"""From a result to statements: plain data, no formatting."""
