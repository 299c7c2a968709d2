// SPDX-License-Identifier: Apache-2.0
// The cases of asio_test.cpp, with Boost's Asio.
#define TOCSIN_BOOST_ASIO
#include "asio_test.cpp"
