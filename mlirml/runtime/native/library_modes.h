// The attribute `mode` of operations that libraries compute, as `mlirml/ir/library_calls.py` has it.
#pragma once

namespace mlirml {

enum QrMode { kQrReduced, kQrComplete, kQrR, kQrRaw };
enum SvdMode { kSvdValues, kSvdReduced, kSvdFull };
enum SpectrumBits { kVectors = 1, kUpper = 2 };
enum TriangularBits { kLower = 1, kUnit = 2, kTransposed = 4, kConjugated = 8 };

enum FourierTransform { kC2C, kR2C, kC2R };
enum FourierBits { kTransform = 3, kBackward = 4, kByCount = 8, kByRoot = 16, kOdd = 32, kAxesShift = 6 };

}  // namespace mlirml
