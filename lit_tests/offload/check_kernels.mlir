// RUN: mlirml-opt %s --split-input-file --verify-diagnostics '--mlirml-check-kernels=device=small,buffers=2,shared-bytes=64,threads=128'

// What fits is left as it is.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fits(%a: memref<8xf32>, %b: memref<8xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %s = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // expected-error@+1 {{a kernel takes 3 arrays, and the target 'small' binds 2 at once}}
    gpu.func @buffers(%a: memref<8xf32>, %b: memref<8xf32>, %n: index) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // expected-error@+1 {{a kernel shares 68 bytes in a block, and the target 'small' has 64}}
    gpu.func @shared(%a: memref<8xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %s = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
      %t = memref.alloc() : memref<9xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // expected-error@+1 {{a kernel has blocks of 256 threads, and the target 'small' has 128}}
    gpu.func @threads(%a: memref<8xf32>) kernel attributes {known_block_size = array<i32: 16, 16, 1>} {
      gpu.return
    }
  }
}
