/* A module as another build would have made it: the loader must refuse it before it calls anything else. */
const char* bertrand_build_hash(void) { return "0123456789abcdef"; }
