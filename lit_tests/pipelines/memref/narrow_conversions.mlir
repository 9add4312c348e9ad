// RUN: mlirml-opt %s --mlirml-narrow-conversions | filecheck %s

// CHECK-LABEL: func.func @bounded
// CHECK: %[[SHORT:.*]] = arith.fptosi %{{.*}} : f64 to i32
// CHECK: %[[LONG:.*]] = arith.extsi %[[SHORT]] : i32 to i64
// CHECK: %[[AFTER:.*]] = arith.addi %[[LONG]]
// CHECK: %[[BACK:.*]] = arith.trunci %[[AFTER]] : i64 to i32
// CHECK: arith.sitofp %[[BACK]] : i32 to f64
func.func @bounded(%x: f64) -> f64 {
  %least = arith.constant -9.0 : f64
  %most = arith.constant 1.0e9 : f64
  %c1 = arith.constant 1 : i64
  %0 = arith.minnumf %x, %most : f64
  %1 = arith.maxnumf %0, %least : f64
  %2 = arith.subf %1, %least : f64
  %3 = arith.fptosi %2 : f64 to i64
  %4 = arith.addi %3, %c1 : i64
  %5 = arith.sitofp %4 : i64 to f64
  return %5 : f64
}

// Numbers beyond 32 bits, and what may be a NaN, stay as they are.
// CHECK-LABEL: func.func @unbounded
// CHECK-NOT: i32
func.func @unbounded(%x: f64, %n: i64) -> (i64, i64, f64) {
  %least = arith.constant 0.0 : f64
  %most = arith.constant 2147483648.0 : f64
  %seven = arith.constant 7.0 : f64
  %0 = arith.minnumf %x, %most : f64
  %1 = arith.maxnumf %0, %least : f64
  %2 = arith.fptosi %1 : f64 to i64
  %3 = arith.minimumf %x, %seven : f64
  %4 = arith.maximumf %3, %least : f64
  %5 = arith.fptosi %4 : f64 to i64
  %6 = arith.sitofp %n : i64 to f64
  return %2, %5, %6 : i64, i64, f64
}
