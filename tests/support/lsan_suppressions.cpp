// Linked into every test of a build with LeakSanitizer. libhdf5 1.10 leaks what it had read of a damaged file when it refuses it; that is not
// ours to mend, and our own leaks still count.
extern "C" const char* __lsan_default_suppressions();  // the sanitizer's documented hook, declared in no header of gcc 12
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
