"""`python -m mlirml.cli.opt`."""

import sys

from mlirml.cli.opt.main import main

sys.exit(main())
