"""The linear algebra of the array API: NumPy's functions, which are operations in compiled code."""

from numpy.linalg import *  # noqa: F403
from numpy.linalg import __all__ as __all__
