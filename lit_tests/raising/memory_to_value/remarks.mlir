// RUN: mlirml-opt %s --mlirml-memory-to-value --remarks --verify-diagnostics

func.func private @g(memref<8xf32>)

func.func @escapes(%x: memref<8xf32>, %a: f32, %i: index) {
  memref.store %a, %x[%i] : memref<8xf32>
  // expected-remark@+1 {{not raised: the function stays on memory: `func.call` works on an array}}
  func.call @g(%x) : (memref<8xf32>) -> ()
  return
}

// expected-remark@+1 {{not raised: the function stays on memory: another one calls it with an array}}
func.func @called(%x: memref<8xf32>, %a: f32, %i: index) {
  memref.store %a, %x[%i] : memref<8xf32>
  return
}

func.func @calls(%a: f32, %i: index) -> f32 {
  %x = memref.alloc() : memref<8xf32>
  // expected-remark@+1 {{not raised: the function stays on memory: `func.call` works on an array}}
  func.call @called(%x, %a, %i) : (memref<8xf32>, f32, index) -> ()
  %b = memref.load %x[%i] : memref<8xf32>
  return %b : f32
}

func.func @chooses(%x: memref<8xf32>, %y: memref<8xf32>, %c: i1, %a: f32, %i: index) {
  // expected-remark@+1 {{not raised: the function stays on memory: `arith.select` works on an array}}
  %z = arith.select %c, %x, %y : memref<8xf32>
  memref.store %a, %z[%i] : memref<8xf32>
  return
}

func.func @overlaps(%x: memref<8xf32>) {
  %low = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %high = memref.subview %x[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  // expected-remark@+1 {{not raised: the function stays on memory: it reads the array that it stores into}}
  linalg.exp ins(%low : memref<4xf32, strided<[1]>>) outs(%high : memref<4xf32, strided<[1], offset: 2>>)
  return
}

func.func @blocks(%x: memref<8xf32>, %a: f32, %i: index) {
  // expected-remark@-1 {{not raised: the function stays on memory: it has several blocks}}
  memref.store %a, %x[%i] : memref<8xf32>
  cf.br ^bb1
^bb1:
  return
}
