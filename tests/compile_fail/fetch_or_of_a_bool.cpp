// expect: fetch_or
#include <tocsin/address.hpp>

#if defined(MISUSE)
void change(std::atomic<bool>* address) { tocsin::fetch_or(address, true, tocsin::wake_all); }
#endif
