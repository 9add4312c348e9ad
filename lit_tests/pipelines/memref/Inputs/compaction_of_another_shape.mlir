// CHECK: `mlirml.positions`: the shapes [1, 40], [1, 2], [1, 41] do not fit
func.func @positions(%mask: memref<1x40xi1>, %counts: memref<1x2xi64>, %out: memref<1x41xi64>) {
  "mlirml.positions"(%mask, %counts, %out) {kind = "i64"} : (memref<1x40xi1>, memref<1x2xi64>, memref<1x41xi64>) -> ()
  return
}
