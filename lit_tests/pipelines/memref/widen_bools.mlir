// RUN: mlirml-opt %s --mlirml-widen-bools | filecheck %s

#v = affine_map<(i) -> (i)>

// CHECK: memref.global "private" constant @mask : memref<2xi8> = dense<[1, 0]>
memref.global "private" constant @mask : memref<2xi1> = dense<[true, false]>

// CHECK-LABEL: func.func @body
// CHECK-SAME: (%{{.*}}: memref<8xi8>, %{{.*}}: memref<8xi8>)
// CHECK: ^bb0(%[[BYTE:.*]]: i8, %{{.*}}: i8):
// CHECK: %[[BIT:.*]] = arith.cmpi ne, %[[BYTE]], %c0_i8 : i8
// CHECK: %[[NOT:.*]] = arith.xori %[[BIT]], %true : i1
// CHECK: %[[OUT:.*]] = arith.extui %[[NOT]] : i1 to i8
// CHECK: linalg.yield %[[OUT]] : i8
func.func @body(%x: memref<8xi1>, %y: memref<8xi1>) {
  %true = arith.constant true
  linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : memref<8xi1>) outs(%y : memref<8xi1>) {
  ^bb0(%a: i1, %o: i1):
    %0 = arith.xori %a, %true : i1
    linalg.yield %0 : i1
  }
  return
}

// CHECK-LABEL: func.func @accesses
// CHECK: %[[M:.*]] = memref.get_global @mask : memref<2xi8>
// CHECK: %[[BYTE:.*]] = memref.load %[[M]]
// CHECK: %[[BIT:.*]] = arith.cmpi ne, %[[BYTE]]
// CHECK: %[[OUT:.*]] = arith.extui %[[BIT]]
// CHECK: memref.store %[[OUT]], %arg0
// CHECK: linalg.fill ins(%{{.*}} : i8) outs(%arg0 : memref<2xi8>)
func.func @accesses(%y: memref<2xi1>) {
  %c0 = arith.constant 0 : index
  %false = arith.constant false
  %m = memref.get_global @mask : memref<2xi1>
  %a = memref.load %m[%c0] : memref<2xi1>
  memref.store %a, %y[%c0] : memref<2xi1>
  linalg.fill ins(%false : i1) outs(%y : memref<2xi1>)
  return
}

// CHECK-LABEL: func.func @other_types_stay
// CHECK-SAME: memref<8xi8>, %{{.*}}: memref<8xf32>, %{{.*}}: i1
func.func @other_types_stay(%x: memref<8xi8>, %y: memref<8xf32>, %z: i1) {
  return
}

// CHECK-LABEL: func.func @reduction
// CHECK: ^bb0(%[[BYTE:.*]]: i8, %[[SUM:.*]]: i8):
// CHECK: %[[BIT:.*]] = arith.cmpi ne, %[[BYTE]]
// CHECK: %[[X:.*]] = arith.extui %[[BIT]] : i1 to i8
// CHECK: %[[OUT:.*]] = arith.ori %[[X]], %[[SUM]] : i8
// CHECK: linalg.yield %[[OUT]] : i8
func.func @reduction(%x: memref<8xi1>, %y: memref<i1>) {
  linalg.generic {indexing_maps = [#v, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : memref<8xi1>) outs(%y : memref<i1>) {
  ^bb0(%a: i1, %o: i1):
    %0 = arith.ori %o, %a : i1
    linalg.yield %0 : i1
  }
  return
}
