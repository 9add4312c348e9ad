// RUN: mlirml-opt %s --mlirml-expand-math=processor=avx512 | filecheck %s

// The tail of the normal distribution with what rounding its argument loses is one function; without, it is erfc.
// CHECK-LABEL: func.func @tails
// CHECK-SAME: (%[[X:.*]]: f32, %[[V:.*]]: vector<4xf32>
// CHECK-NOT: erfc
// CHECK: call @mlirml.normal_tail.f32(%[[X]])
// CHECK-NOT: erfc
// CHECK: call @mlirml.normal_tail.v4xf32(%[[V]])
// CHECK: call @mlirml.erfc.f32
// CHECK-NEXT: math.fma
// CHECK-LABEL: func.func private @mlirml.normal_tail.f32(
// CHECK-COUNT-1: arith.divf
// CHECK-NOT: arith.divf
// CHECK-LABEL: func.func private
func.func @tails(%x: f32, %v: vector<4xf32>) -> (f32, vector<4xf32>, f32) {
  %high = arith.constant -0.707106769 : f32
  %low = arith.constant -1.21016175E-8 : f32
  %two = arith.constant -2.0 : f32
  %zero = arith.constant 0.0 : f32
  %end = arith.constant 28.0 : f32
  %z = arith.mulf %x, %high : f32
  %opposite = arith.negf %z : f32
  %lost0 = math.fma %x, %high, %opposite : f32
  %lost = math.fma %x, %low, %lost0 : f32
  %twice = arith.mulf %lost, %two : f32
  %change = arith.mulf %z, %twice : f32
  %above = arith.cmpf ogt, %z, %zero : f32
  %below = arith.cmpf olt, %z, %end : f32
  %inside = arith.andi %above, %below : i1
  %some = arith.select %inside, %change, %zero : f32
  %tail = math.erfc %z : f32
  %y = math.fma %some, %tail, %tail : f32
  %vhigh = arith.constant dense<-0.707106769> : vector<4xf32>
  %vlow = arith.constant dense<-1.21016175E-8> : vector<4xf32>
  %vtwo = arith.constant dense<-2.0> : vector<4xf32>
  %vzero = arith.constant dense<0.0> : vector<4xf32>
  %vend = arith.constant dense<28.0> : vector<4xf32>
  %vz = arith.mulf %v, %vhigh : vector<4xf32>
  %vopposite = arith.negf %vz : vector<4xf32>
  %vlost0 = math.fma %v, %vhigh, %vopposite : vector<4xf32>
  %vlost = math.fma %v, %vlow, %vlost0 : vector<4xf32>
  %vtwice = arith.mulf %vlost, %vtwo : vector<4xf32>
  %vchange = arith.mulf %vz, %vtwice : vector<4xf32>
  %vabove = arith.cmpf ogt, %vz, %vzero : vector<4xf32>
  %vbelow = arith.cmpf olt, %vz, %vend : vector<4xf32>
  %vinside = arith.andi %vabove, %vbelow : vector<4xi1>
  %vsome = arith.select %vinside, %vchange, %vzero : vector<4xi1>, vector<4xf32>
  %vtail = math.erfc %vz : vector<4xf32>
  %vy = math.fma %vsome, %vtail, %vtail : vector<4xf32>
  %other = math.erfc %z : f32
  %w = math.fma %change, %other, %other : f32
  return %y, %vy, %w : f32, vector<4xf32>, f32
}
