// Threads that the interpreter ends at its exit.
//
// Before version 3.14, Python ends a thread of the background by `pthread_exit` where it next asks for the GIL. That
// unwinds the thread's stack, and the destructors in the C++ frames on it would let go of Python objects without the
// GIL, while the main thread takes the interpreter apart. Such a thread stops here until the process ends, as it does
// from 3.14 on. The linker puts this function in the place of `__gxx_personality_v0` (`--wrap` in CMakeLists.txt), which
// the unwinder asks what to do with each C++ frame.
#include <Python.h>
#include <unistd.h>
#include <unwind.h>

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception *,
                                                _Unwind_Context *);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception *exception, _Unwind_Context *frame) {
  if ((actions & _UA_FORCE_UNWIND) && !Py_IsInitialized())
    for (;;) pause();
  return __real___gxx_personality_v0(version, actions, kind, exception, frame);
}
}
