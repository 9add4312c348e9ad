// RUN: mlirml-opt %s --mlirml-annotate-loops --split-input-file | filecheck %s
// RUN: mlirml-opt %s --mlirml-annotate-loops --convert-scf-to-cf --convert-to-llvm --mlirml-annotate-loops --split-input-file | filecheck %s --check-prefix=LLVM

// Counts at indices that are read: LLVM cannot vectorise the loop.
// CHECK:       #[[UNROLL:.*]] = #llvm.loop_unroll<count = 8 : i32>
// CHECK:       #[[LOOP:.*]] = #llvm.loop_annotation<unroll = #[[UNROLL]]>
// CHECK-LABEL: func.func @counts
// CHECK:       } {llvm.loop_annotation = #[[LOOP]]}
// LLVM-LABEL:  llvm.func @counts
// LLVM:        llvm.br ^{{.*}} {loop_annotation = #{{.*}}}
func.func @counts(%x: memref<512xi8>, %y: memref<256xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %n = arith.constant 512 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<512xi8>
    %bin = arith.index_castui %a : i8 to index
    %old = memref.load %y[%bin] : memref<256xi64>
    %new = arith.addi %old, %one : i64
    memref.store %new, %y[%bin] : memref<256xi64>
  }
  return
}

// -----

// Bytes at indices that are read are not gathered.
// CHECK:       #llvm.loop_vectorize<width = 1 : i32>
// CHECK-LABEL: func.func @table
// CHECK:       llvm.loop_annotation
func.func @table(%x: memref<512xi8>, %t: memref<256xi8>, %y: memref<512xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 512 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<512xi8>
    %at = arith.index_castui %a : i8 to index
    %b = memref.load %t[%at] : memref<256xi8>
    memref.store %b, %y[%i] : memref<512xi8>
  }
  return
}

// -----

// An element is computed of the one before it.
// CHECK:       #llvm.loop_unroll<count = 8 : i32>
// CHECK-LABEL: func.func @recurrence
// CHECK:       llvm.loop_annotation
func.func @recurrence(%x: memref<512xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 512 : index
  scf.for %i = %c1 to %n step %c1 {
    %before = arith.subi %i, %c1 : index
    %a = memref.load %x[%before] : memref<512xf64>
    %b = memref.load %x[%i] : memref<512xf64>
    %s = arith.addf %a, %b : f64
    memref.store %s, %x[%i] : memref<512xf64>
  }
  return
}

// -----

// Two iterations of a sum in order.
// CHECK:       #llvm.loop_unroll<full = true>
// CHECK-LABEL: func.func @short
// CHECK:       llvm.loop_annotation
func.func @short(%x: memref<2xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  %zero = arith.constant 0.0 : f64
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero) -> f64 {
    %a = memref.load %x[%i] : memref<2xf64>
    %u = arith.addf %t, %a : f64
    scf.yield %u : f64
  }
  return %s : f64
}

// -----

// LLVM vectorises these.
// CHECK-LABEL: func.func @vectorised
// CHECK-NOT:   llvm.loop_annotation
// CHECK:       return
func.func @vectorised(%x: memref<512xf64>, %y: memref<512xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 512 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %y[%i] : memref<512xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %y[%i] : memref<512xf64>
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero) -> f64 {
    %a = memref.load %x[%i] : memref<512xf64>
    %u = arith.addf %t, %a fastmath<reassoc> : f64
    scf.yield %u : f64
  }
  return %s : f64
}

// -----

// LLVM vectorises an extreme of numbers that are not NaN, and keeps one that meets NaN in order.
// CHECK:       #llvm.loop_unroll<count = 8 : i32>
// CHECK-LABEL: func.func @extremes
// CHECK:       arith.maximumf %{{.*}} fastmath<nnan,nsz>
// CHECK-NEXT:  scf.yield
// CHECK-NEXT:  }{{$}}
// CHECK:       arith.maximumf
// CHECK-NEXT:  scf.yield
// CHECK-NEXT:  } {llvm.loop_annotation
func.func @extremes(%x: memref<80xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 80 : index
  %lowest = arith.constant 0xFF800000 : f32
  %most = scf.for %i = %c0 to %n step %c1 iter_args(%t = %lowest) -> f32 {
    %a = memref.load %x[%i] : memref<80xf32>
    %u = arith.maximumf %a, %t fastmath<nnan,nsz> : f32
    scf.yield %u : f32
  }
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %lowest) -> f32 {
    %a = memref.load %x[%i] : memref<80xf32>
    %u = arith.maximumf %a, %t : f32
    scf.yield %u : f32
  }
  return %most, %r : f32, f32
}

// -----

// The bits of a checksum, each of which needs the one before; not a sum of integers.
// CHECK:       #llvm.loop_unroll<full = true>
// CHECK-LABEL: func.func @bits
// CHECK:       scf.yield
// CHECK-NEXT:  } {llvm.loop_annotation
// CHECK:       scf.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  arith.addi
func.func @bits(%x: memref<8xi64>, %start: i64) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %one = arith.constant 1 : i64
  %poly = arith.constant 33800 : i64
  %crc = scf.for %i = %c0 to %n step %c1 iter_args(%t = %start) -> i64 {
    %low = arith.andi %t, %one : i64
    %odd = arith.cmpi eq, %low, %one : i64
    %half = arith.shrsi %t, %one : i64
    %other = arith.xori %half, %poly : i64
    %next = arith.select %odd, %other, %half : i64
    scf.yield %next : i64
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %start) -> i64 {
    %a = memref.load %x[%i] : memref<8xi64>
    %u = arith.addi %t, %a : i64
    scf.yield %u : i64
  }
  %both = arith.addi %crc, %sum : i64
  return %both : i64
}

// -----

// A small loop with a branch whose results are carried.
// CHECK:       #llvm.loop_unroll<count = 4 : i32>
// CHECK-LABEL: func.func @branching
// CHECK:       scf.yield %{{.*}}#0, %{{.*}}#1
// CHECK-NEXT:  } {llvm.loop_annotation
func.func @branching(%x: memref<80xi64>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 80 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero, %u = %zero) -> (i64, i64) {
    %a = memref.load %x[%i] : memref<80xi64>
    %at = arith.cmpi eq, %a, %zero : i64
    %s:2 = scf.if %at -> (i64, i64) {
      %m = arith.maxsi %t, %u : i64
      scf.yield %m, %zero : i64, i64
    } else {
      %v = arith.addi %u, %one : i64
      scf.yield %t, %v : i64, i64
    }
    scf.yield %s#0, %s#1 : i64, i64
  }
  return %r#0 : i64
}
