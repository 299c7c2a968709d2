// SPDX-License-Identifier: Apache-2.0
// The stop token that most waits accept: std::stop_token, from a std::jthread or a std::stop_source.
#pragma once

#include <tocsin/detail/atomic.hpp>

namespace tocsin {

using stop_token = detail::stop_token;

}  // namespace tocsin
