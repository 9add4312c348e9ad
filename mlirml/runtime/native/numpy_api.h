// The Python and NumPy headers, set up for several translation units. module.cpp defines MLIRML_IMPORT_NUMPY.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL mlirml_array_api
#ifndef MLIRML_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
