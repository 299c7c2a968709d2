// SPDX-License-Identifier: Apache-2.0
// Calls that the check of std_calls/clang-tidy.yml must find: in each line that ends with `found`, and in no other.
#include <algorithm>
#include <chrono>
#include <exception>
#include <iomanip>  // has std::quoted(), which is the better match for a std::string
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin {

struct own {};
struct derived : std::exception {};
template <class T>
struct holder {};
std::string quoted(std::string_view text);
std::size_t count(const own& one);
std::size_t count(const std::vector<own>& all);
void destroy(own* one);
void fill(const std::vector<own>& all);
void drain(own& one, std::memory_order order);
void exchange(std::chrono::nanoseconds time);
void remove(const std::unique_ptr<own>* one);
void advance(std::memory_order order);
void merge(const derived& one);
void rotate(const holder<std::string>& one);

template <class T>
void generic(const T& unknown) {
    (void)count(unknown);          // found
    (void)tocsin::count(unknown);  // its namespace is named
}

void calls(const std::string& text, own& one, const std::vector<own>& all,
           const std::unique_ptr<own>* pointer) {
    (void)quoted(text);                     // found
    (void)quoted(std::string_view(text));   // found
    (void)count(all);                       // found
    fill(all);                              // found
    exchange(std::chrono::seconds(1));      // found
    remove(pointer);                        // found
    advance(std::memory_order_relaxed);     // found
    merge(derived{});                       // found
    rotate(holder<std::string>{});          // found
    (void)count(one);                       // no type of std
    destroy(&one);                          // nor here
    drain(one, std::memory_order_relaxed);  // std has no such function
    (void)tocsin::quoted(text);             // its namespace is named
    (void)std::count(text.begin(), text.end(), 'a');
    generic(one);
}

}  // namespace tocsin
