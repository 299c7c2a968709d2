// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tocsin::model {

void tracer::clear() {
    names_.clear();
    rows_.clear();
    made_up_ = 0;
}

void tracer::name(const void* address, std::string_view text) {
    for (named& n : names_)
        if (n.address == address) {
            n.text = text;
            return;
        }
    names_.push_back({address, std::string(text)});
}

void tracer::forget(const void* address) {
    std::erase_if(names_, [=](const named& n) { return n.address == address; });
}

std::string tracer::name_of(const void* address) {
    for (const named& n : names_)
        if (n.address == address) return n.text;
    names_.push_back({address, "object" + std::to_string(++made_up_)});
    return names_.back().text;
}

std::string tracer::file_and_line(const std::source_location& where) {
    if (where.line() == 0) return {};
    std::string_view file = where.file_name();
    if (const auto slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
    return std::string(file) + ':' + std::to_string(where.line());
}

std::string tracer::value(unsigned long long v) {
    if (v < 100'000) return std::to_string(v);
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", v);
    return text;
}

std::string tracer::table() const {
    constexpr std::size_t columns = 8;
    std::vector<std::array<std::string, columns>> cells{
        {"step", "thread", "operation", "object", "value", "order", "remark", "where"}};
    for (const trace_row& r : rows_)
        cells.push_back({r.step == 0 ? "" : std::to_string(r.step), r.thread, r.operation, r.object, r.value,
                         r.order, r.remark, r.where});
    std::array<std::size_t, columns> width{};
    for (const auto& row : cells)
        for (std::size_t i = 0; i < columns; ++i) width[i] = std::max(width[i], row[i].size());
    std::string text;
    for (const auto& row : cells) {
        std::string line;
        for (std::size_t i = 0; i < columns; ++i) {
            if (width[i] == 0) continue;
            const std::string padding(width[i] - row[i].size(), ' ');
            line += i == 0 ? padding + row[i] : row[i] + padding;
            line += "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

}  // namespace tocsin::model
