// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

struct counted {
    counted() = default;
    counted(const counted& other) : count(other.count + 1) {}
    std::uint32_t count = 0;
};

struct padded {
    std::uint8_t one;
    std::uint16_t two;
};

struct sixteen {
    std::uint64_t halves[2];
};

struct three {
    unsigned char bytes[3];
};

enum class phase : std::uint8_t { closed, open };

void fine(const std::uint8_t* address) { (void)tocsin::wait_on_address(address, std::uint8_t{1}); }

// expect: needs a trivially copyable type
#ifdef MISUSE_address_of_nontrivial_object
void wait(const counted* address) { (void)tocsin::wait_on_address(address, counted{}); }
#endif

// expect: must not have padding
#ifdef MISUSE_address_of_padded_object
void wait(const padded* address) { (void)tocsin::wait_on_address(address, padded{}); }
#endif

// Of tocsin's atomics: with GCC 13 to 15, padding would prevent their constant initialization.
// expect: constraint failure|constraints not satisfied
#ifdef MISUSE_atomic_of_padded_value
tocsin::detail::atomic<padded> atomic_of_padded;
#endif

// expect: an object of 1, 2, 4 or 8 bytes
#ifdef MISUSE_address_of_sixteen_bytes
void wait(const sixteen* address) { (void)tocsin::wait_on_address(address, sixteen{}); }
#endif

// expect: an object of 1, 2, 4 or 8 bytes
#ifdef MISUSE_address_of_three_bytes
void wait(const three* address) { (void)tocsin::wait_on_address(address, three{}); }
#endif

// expect: conver
#ifdef MISUSE_address_value_of_another_type
void wait(const std::uint8_t* address, const char* value) { (void)tocsin::wait_on_address(address, value); }
#endif

// expect: could not convert|no known conversion|no matching function
#ifdef MISUSE_change_by_a_number_of_waiters
void change(std::atomic<int>* address) { tocsin::fetch_add(address, 1, 3); }  // wake_n(3)
#endif

// expect: const
#ifdef MISUSE_change_of_a_const_object
void change(const std::atomic<int>* address) { tocsin::store(address, 1, tocsin::wake_all); }
#endif

// expect: must not have padding
#ifdef MISUSE_change_of_padded_object
void change(std::atomic<padded>* address) { tocsin::store(address, padded{}, tocsin::wake_all); }
#endif

// expect: an object of 1, 2, 4 or 8 bytes
#ifdef MISUSE_change_of_three_bytes
void change(std::atomic<three>* address) { tocsin::store(address, three{}, tocsin::wake_all); }
#endif

// expect: too few arguments|no matching function
#ifdef MISUSE_change_without_a_count
void change(std::atomic<int>* address) { tocsin::store(address, 1); }
#endif

// expect: no matching function
#ifdef MISUSE_fetch_add_of_an_enumeration
void change(std::atomic<phase>* address) { tocsin::fetch_add(address, 1, tocsin::wake_all); }
#endif

// expect: fetch_or
#ifdef MISUSE_fetch_or_of_a_bool
void change(std::atomic<bool>* address) { tocsin::fetch_or(address, true, tocsin::wake_all); }
#endif
