// SPDX-License-Identifier: Apache-2.0
// The table of a failing run.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::model {

struct trace_row {
    unsigned step = 0;
    std::string thread;
    std::string operation;
    std::string object;
    std::string value;
    std::string order;
    std::string remark;
    std::string where;
};

class tracer {
public:
    bool on = false;

    void clear();
    void name(const void* address, std::string_view text);
    void forget(const void* address);
    // The name that the object was given, or one invented at the first request.
    std::string name_of(const void* address);
    void add(trace_row row) { rows_.push_back(std::move(row)); }
    std::string table() const;

    static std::string file_and_line(const std::source_location& where);
    static std::string value(unsigned long long v);

private:
    struct named {
        const void* address;
        std::string text;
    };
    std::vector<named> names_;
    std::vector<trace_row> rows_;
    int made_up_ = 0;
};

}  // namespace tocsin::model
