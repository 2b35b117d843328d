// oneDNN is not instrumented: the thread sanitizer sees neither its accesses nor the synchronisation of its
// OpenMP regions, only its calls of malloc and memset, and takes those of two of its threads for a race.
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libdnnl.so\n"; }
#endif
