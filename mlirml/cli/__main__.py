"""`python -m mlirml.cli`."""

import sys

from mlirml.cli import main

sys.exit(main())
