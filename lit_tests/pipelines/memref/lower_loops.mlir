// RUN: mlirml-opt %s --split-input-file --mlirml-lower-loops | filecheck %s

#m = affine_map<(i, j) -> (i, j)>

// What all operands walk as one is one loop.
// CHECK-LABEL: func.func @contiguous_loops_are_merged
// CHECK: %[[X:.*]] = memref.collapse_shape %arg0 {{\[}}[0, 1]] : memref<4x8xf32> into memref<32xf32>
// CHECK: %[[Y:.*]] = memref.collapse_shape %arg1
// CHECK: scf.for %[[I:.*]] = %c0 to %c32 step %c1
// CHECK-NEXT: %[[A:.*]] = memref.load %[[X]][%[[I]]]
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[A]]
// CHECK-NEXT: memref.store %[[N]], %[[Y]][%[[I]]]
func.func @contiguous_loops_are_merged(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The accumulator is carried, LLVM may reassociate it, and the fill is its start.
// CHECK-LABEL: func.func @row_sums
// CHECK-NOT: linalg.fill
// CHECK: scf.for %[[I:.*]] = %c0 to %c4
// CHECK: scf.for %[[J:.*]] = %c0 to %c8 step %c1 iter_args(%[[S:.*]] = %{{.*}}) -> (f32)
// CHECK: %[[A:.*]] = memref.load
// CHECK: arith.addf %[[S]], %[[A]] fastmath<reassoc>
// CHECK: %[[R:.*]] = arith.addf %cst, %{{.*}} : f32
// CHECK: memref.store %[[R]], %arg1[%[[I]]]
func.func @row_sums(%x: memref<4x8xf32>, %y: memref<4xf32>) {
  %cst = arith.constant 0.0 : f32
  linalg.fill ins(%cst : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows that come from memory are read in order, as one stream.
// CHECK-LABEL: func.func @long_row_sums
// CHECK: scf.parallel (%[[I:.*]]) = (%c0) to (%c1000) step (%c1)
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c1 iter_args({{.*}}) -> (f32)
// CHECK: memref.store %{{.*}}, %arg1[%[[I]]]
func.func @long_row_sums(%x: memref<1000x512xf32>, %y: memref<1000xf32>) {
  linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<1000x512xf32>) outs(%y : memref<1000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Long rows of more than the caches hold are summed in lanes, and prefetched a page ahead, one line for each 64 bytes;
// the elements after the last block are summed one by one.
// CHECK-LABEL: func.func @long_row_sums_from_memory
// CHECK: scf.parallel (%[[I:.*]]) = (%c0) to (%c5000) step (%c1)
// CHECK: %[[S:.*]]:2 = scf.for %[[B:.*]] = %c0 to %c2048 step %c512 iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>)
// CHECK: scf.for %[[J:.*]] = %[[B]] to %{{.*}} step %c32 iter_args(%[[P:.*]] = %{{.*}}) -> (vector<32xf32>)
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[J]]
// CHECK: %[[FAR:.*]] = arith.addi %[[AT]], %c1024
// CHECK: memref.prefetch %{{.*}}[%[[FAR]]], read, locality<2>
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c1040
// CHECK: memref.prefetch %{{.*}}[%[[NEXT]]], read, locality<2>
// CHECK-NOT: memref.prefetch
// CHECK: %[[V:.*]] = vector.load %{{.*}}[%[[AT]]]
// CHECK: arith.addf %[[P]], %[[V]] : vector<32xf32>
// CHECK: vector.reduction <add>, %[[S]]#0
// CHECK: vector.reduction <add>, %[[S]]#1
// CHECK: scf.for %{{.*}} = %c2048 to %c2050 step %c1 iter_args({{.*}}) -> (f32)
// CHECK: memref.store %{{.*}}, %arg1[%[[I]]]
func.func @long_row_sums_from_memory(%x: memref<5000x2050xf32>, %y: memref<5000xf32>) {
  linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<5000x2050xf32>) outs(%y : memref<5000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Of long rows from memory, the lines of the next eight are prefetched.
// CHECK-LABEL: func.func @long_column_sums_from_memory
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c8
// CHECK: scf.for %[[B:.*]] = %c0 to %[[LAST:.*]] step %c16
// CHECK-COUNT-8: memref.prefetch %{{.*}}[%{{.*}}], read, locality<2>
// CHECK: %[[END:.*]] = arith.addi %[[B]], %c16
// CHECK: scf.for %{{.*}} = %[[B]] to %[[END]] step %c1
// CHECK: scf.for %{{.*}} = %[[LAST]] to %{{.*}} step %c1
func.func @long_column_sums_from_memory(%x: memref<5000x2050xf32>, %y: memref<2050xf32>) {
  linalg.generic {indexing_maps = [#m, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<5000x2050xf32>) outs(%y : memref<2050xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Eight rows at a time are added to the out; the innermost loop walks a row.
// CHECK-LABEL: func.func @column_sums
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c8
// CHECK: scf.for %[[J:.*]] = %c0 to %c100 step %c1
// CHECK-COUNT-8: memref.load %collapse_shape
// CHECK: %[[S:.*]] = memref.load %arg1[%[[J]]]
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %{{.*}} : f32
// CHECK-NEXT: memref.store %[[T]], %arg1[%[[J]]]
func.func @column_sums(%x: memref<16x100xf32>, %y: memref<100xf32>) {
  linalg.generic {indexing_maps = [#m, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<16x100xf32>) outs(%y : memref<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Five arrays are sixteen pieces of memory at most: two rows of each.
// CHECK-LABEL: func.func @column_sums_of_products
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c2
// CHECK: scf.for %[[J:.*]] = %c0 to %c100 step %c1
// CHECK-COUNT-10: memref.load %collapse_shape
// CHECK: %[[S:.*]] = memref.load %arg5[%[[J]]]
func.func @column_sums_of_products(%p: memref<16x100xf32>, %q: memref<16x100xf32>, %r: memref<16x100xf32>,
                                   %s: memref<16x100xf32>, %t: memref<16x100xf32>, %y: memref<100xf32>) {
  linalg.generic {indexing_maps = [#m, #m, #m, #m, #m, #column], iterator_types = ["reduction", "parallel"]}
      ins(%p, %q, %r, %s, %t : memref<16x100xf32>, memref<16x100xf32>, memref<16x100xf32>, memref<16x100xf32>,
                               memref<16x100xf32>)
      outs(%y : memref<100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.mulf %0, %c : f32
    %2 = arith.mulf %1, %d : f32
    %3 = arith.mulf %2, %e : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  }
  return
}

// -----

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @big_loops_are_parallel
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c4000000) step (%c1)
// CHECK: scf.reduce
// CHECK-NEXT: } {mlirml.grain = {{[0-9]+}} : i64}
func.func @big_loops_are_parallel(%x: memref<4000000xf32>) {
  %cst = arith.constant 1.0 : f32
  linalg.fill ins(%cst : f32) outs(%x : memref<4000000xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @copies_of_slices
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [3], sizes: [21], strides: [1]
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: memref.copy
func.func @copies_of_slices(%x: memref<4x8xf32>, %y: memref<3x5xf32>) {
  %s = memref.subview %x[0, 3] [3, 5] [1, 1] : memref<4x8xf32> to memref<3x5xf32, strided<[8, 1], offset: 3>>
  memref.copy %s, %y : memref<3x5xf32, strided<[8, 1], offset: 3>> to memref<3x5xf32>
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @transposes_go_through_registers
// CHECK-COUNT-8: vector.load {{.*}} vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store
func.func @transposes_go_through_registers(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#m, #t], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A row is in cache when it is read again; nothing else is asked for in between.
// CHECK-LABEL: func.func @rows_share_their_loop
// CHECK: scf.parallel (%[[I:.*]]) = (%c0) to (%c1000)
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.store %{{.*}}, %arg1[%[[I]]]
// CHECK-NOT: memref.prefetch
// CHECK: scf.for
// CHECK: %[[S:.*]] = memref.load %arg1[%[[I]]]
// CHECK: arith.divf %{{.*}}, %[[S]]
// CHECK-NOT: scf.parallel
func.func @rows_share_their_loop(%x: memref<1000x1000xf32>, %s: memref<1000xf32>, %y: memref<1000x1000xf32>) {
  linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<1000x1000xf32>) outs(%s : memref<1000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<1000x1000xf32>, memref<1000xf32>) outs(%y : memref<1000x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// The quotient of a row needs the sums of all rows.
// CHECK-LABEL: func.func @rows_that_need_others_do_not
// CHECK: scf.parallel
// CHECK: scf.parallel
func.func @rows_that_need_others_do_not(%x: memref<1000x1000xf32>, %s: memref<1000xf32>, %y: memref<1000x1000xf32>) {
  linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<1000x1000xf32>) outs(%s : memref<1000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#m, #column, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<1000x1000xf32>, memref<1000xf32>) outs(%y : memref<1000x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Columns are no rows: their elements lie far apart.
// CHECK-LABEL: func.func @columns_do_not_share_a_loop
// CHECK: scf.parallel
// CHECK: scf.parallel
func.func @columns_do_not_share_a_loop(%x: memref<1000x9000xf32>, %s: memref<9000xf32>, %y: memref<1000x9000xf32>) {
  linalg.generic {indexing_maps = [#m, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1000x9000xf32>) outs(%s : memref<9000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#m, #column, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<1000x9000xf32>, memref<9000xf32>) outs(%y : memref<1000x9000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Each lane of four vectors has its best value and the start of the vector that holds it; the remaining eight elements
// are a block of their own.
// CHECK-LABEL: func.func @long_argmax
// CHECK-NOT: linalg.fill
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c102) step (%c1)
// CHECK: %[[LANES:.*]]:2 = scf.for %[[I:.*]] = %c0 to %c4992 step %c32 iter_args({{.*}}) -> (vector<32xi32>, vector<32xi32>)
// CHECK: %[[X:.*]] = vector.load
// CHECK: arith.cmpi sgt, %[[X]]
// CHECK-COUNT-2: arith.select
// CHECK: vector.reduction <maxsi>, %[[LANES]]#0
// CHECK: scf.if
// CHECK: vector.reduction <minsi>
// CHECK: scf.for %{{.*}} = %c4992 to %c5000
// CHECK: arith.maxsi
func.func @long_argmax(%x: memref<102x5000xi32>, %y: memref<102xi32>, %p: memref<102xi64>) {
  %low = arith.constant -2147483648 : i32
  %zero = arith.constant 0 : i64
  linalg.fill ins(%low : i32) outs(%y : memref<102xi32>)
  linalg.fill ins(%zero : i64) outs(%p : memref<102xi64>)
  linalg.generic {indexing_maps = [#m, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<102x5000xi32>) outs(%y, %p : memref<102xi32>, memref<102xi64>) {
  ^bb0(%a: i32, %best: i32, %place: i64):
    %i = linalg.index 1 : index
    %at = arith.index_cast %i : index to i64
    %better = arith.cmpi sgt, %a, %best : i32
    %v = arith.select %better, %a, %best : i32
    %q = arith.select %better, %at, %place : i64
    linalg.yield %v, %q : i32, i64
  }
  return
}

// -----

#all = affine_map<(b, i, j) -> (b, i, j)>
#mask = affine_map<(b, i, j) -> (i, j)>
#row = affine_map<(b, i, j) -> (b, i)>

// A mask that all batches share: the rows of each batch share a loop inside of the loop over batches.
// CHECK-LABEL: func.func @rows_of_rows
// CHECK: scf.for %[[B:.*]] = %c0 to %c12 step %c1
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c512) step (%c1)
// CHECK: scf.for {{.*}} to %c256 step %c1 iter_args({{.*}}) -> (f32)
// CHECK: memref.store
// CHECK: scf.for {{.*}} to %c256 step %c1 {
// CHECK: arith.divf
func.func @rows_of_rows(%x: memref<12x512x256xf32>, %m: memref<512x256xf32>, %s: memref<12x512xf32>, %y: memref<12x512x256xf32>) {
  linalg.generic {indexing_maps = [#all, #mask, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %m : memref<12x512x256xf32>, memref<512x256xf32>) outs(%s : memref<12x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : memref<12x512x256xf32>, memref<12x512xf32>) outs(%y : memref<12x512x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#all = affine_map<(b, i, j) -> (b, i, j)>
#mask = affine_map<(b, i, j) -> (i, j)>
#row = affine_map<(b, i, j) -> (b, i)>

// Where the rows of a batch are too little work to share, threads share the batches.
// CHECK-LABEL: func.func @short_rows_of_rows
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c12) step (%c1)
// CHECK: scf.for {{.*}} to %c128 step %c1 iter_args({{.*}}) -> (f32)
// CHECK: memref.store
// CHECK: scf.for {{.*}} to %c128 step %c1 {
// CHECK: arith.divf
func.func @short_rows_of_rows(%x: memref<12x128x128xf32>, %m: memref<128x128xf32>, %s: memref<12x128xf32>, %y: memref<12x128x128xf32>) {
  linalg.generic {indexing_maps = [#all, #mask, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %m : memref<12x128x128xf32>, memref<128x128xf32>) outs(%s : memref<12x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : memref<12x128x128xf32>, memref<12x128xf32>) outs(%y : memref<12x128x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// A sum that takes away adds the negated: LLVM may add that up in another order.
// CHECK-LABEL: func.func @main
// CHECK: %[[NEW:.*]] = arith.negf
// CHECK: arith.addf %{{.*}}, %[[NEW]] fastmath<reassoc>
func.func @main(%a: memref<8x40xf64>, %s: memref<8xf64>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<8x40xf64>) outs(%s : memref<8xf64>) {
  ^bb0(%x: f64, %total: f64):
    %0 = arith.subf %total, %x : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// Few elements are computed one after the other: a loop would take LLVM longer.

// CHECK-LABEL: func.func @few
// CHECK-NOT: scf.for
// CHECK: arith.negf
// CHECK: arith.negf
// CHECK: arith.negf
// CHECK-NOT: arith.negf
func.func @few(%x: memref<3xf64>, %y: memref<3xf64>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<3xf64>) outs(%y : memref<3xf64>) {
  ^bb0(%a: f64, %out: f64):
    %n = arith.negf %a : f64
    linalg.yield %n : f64
  }
  return
}
