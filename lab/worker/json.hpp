// SPDX-License-Identifier: Apache-2.0
// Writes as much of JSON as the workers need: one value after another; it adds the commas.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace lab {

class json {
public:
    json& open_object() { return open('{'); }
    json& close_object() { return close('}'); }
    json& open_array() { return open('['); }
    json& close_array() { return close(']'); }

    json& key(std::string_view name) {
        quote(name);
        text_ += ':';
        after_key_ = true;
        return *this;
    }

    json& value(std::string_view text) {
        quote(text);
        return *this;
    }
    json& value(const char* text) { return value(std::string_view(text)); }
    json& value(bool truth) { return plain(truth ? "true" : "false"); }
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    json& value(T number) {
        return plain(std::to_string(number));
    }
    json& value(double number) {
        if (!std::isfinite(number)) return plain("null");
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
        return plain(std::string_view(digits, static_cast<std::size_t>(end - digits)));
    }

    template <class T>
    json& field(std::string_view name, const T& content) {
        return key(name).value(content);
    }

    const std::string& text() const noexcept { return text_; }

private:
    json& open(char bracket) {
        separate();
        text_ += bracket;
        fresh_ = true;
        return *this;
    }
    json& close(char bracket) {
        text_ += bracket;
        fresh_ = false;
        return *this;
    }
    json& plain(std::string_view token) {
        separate();
        text_ += token;
        return *this;
    }
    void separate() {
        if (!fresh_ && !after_key_) text_ += ',';
        fresh_ = after_key_ = false;
    }
    void quote(std::string_view text) {
        separate();
        text_ += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                text_ += '\\';
                text_ += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                constexpr const char* hex = "0123456789abcdef";
                text_ += "\\u00";
                text_ += hex[static_cast<unsigned char>(c) >> 4];
                text_ += hex[static_cast<unsigned char>(c) & 15];
            } else {
                text_ += c;
            }
        }
        text_ += '"';
    }

    std::string text_;
    bool fresh_ = true;
    bool after_key_ = false;
};

}  // namespace lab
