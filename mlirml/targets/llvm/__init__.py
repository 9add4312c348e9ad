"""From the LLVM dialect to machine code: translation, jobs, ELF objects, PTX."""
