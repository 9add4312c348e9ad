// RUN: mlirml-opt %s --split-input-file --mlirml-multiply-quotients | filecheck %s

// A hash: its factor divides the numbers up to 33 * 1,048,575 + 255.
// CHECK-LABEL: func.func @hash
// CHECK:       %[[V:.*]] = arith.addi
// CHECK:       %[[P:.*]] = arith.muli %[[V]], %{{.*}} : i64
// CHECK:       %[[Q:.*]] = arith.shrui %[[P]], %{{.*}} : i64
// CHECK:       %[[W:.*]] = arith.muli %[[Q]], %{{.*}} : i64
// CHECK:       %[[R:.*]] = arith.subi %[[V]], %[[W]] : i64
// CHECK-NEXT:  scf.yield %[[R]]
func.func @hash(%text: memref<64xi8>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %start = arith.constant 5381 : i64
  %by = arith.constant 33 : i64
  %most = arith.constant 1000003 : i64
  %r = scf.for %i = %c0 to %c64 step %c1 iter_args(%h = %start) -> (i64) {
    %c = memref.load %text[%i] : memref<64xi8>
    %wide = arith.extui %c : i8 to i64
    %t = arith.muli %h, %by : i64
    %u = arith.addi %t, %wide : i64
    %v = arith.remsi %u, %most : i64
    scf.yield %v : i64
  }
  return %r : i64
}

// -----

// An index has a range, too.
// CHECK-LABEL: func.func @rows
// CHECK-NOT:   arith.divui
// CHECK:       arith.shrui
func.func @rows(%x: memref<300xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c300 = arith.constant 300 : index
  scf.for %i = %c0 to %c300 step %c1 {
    %q = arith.divui %i, %c7 : index
    memref.store %q, %x[%i] : memref<300xindex>
  }
  return
}

// -----

// Numbers that may be negative, of all sizes, and divisors that are powers of two or are not known stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: arith.remsi
// CHECK:       arith.divui
// CHECK-NOT:   arith.shrui
func.func @others(%n: i64, %d: index, %x: memref<8xi64>, %y: memref<8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %seven = arith.constant 7 : i64
  %eight = arith.constant 8 : i64
  %low = arith.constant -2 : i64
  scf.for %i = %c0 to %c8 step %c1 {
    %a = arith.remsi %n, %seven : i64
    %j = arith.index_cast %i : index to i64
    %k = arith.addi %j, %low : i64
    %b = arith.remsi %k, %seven : i64
    %c = arith.remsi %j, %eight : i64
    %s = arith.addi %a, %b : i64
    %t = arith.addi %s, %c : i64
    %q = arith.divui %i, %d : index
    memref.store %t, %x[%i] : memref<8xi64>
    memref.store %q, %y[%i] : memref<8xindex>
  }
  return
}
