// SPDX-License-Identifier: Apache-2.0
#include "protocol.hpp"

#include "json.hpp"
#include "measure/machine.hpp"

namespace lab {
namespace {

std::string_view compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
}

std::string standard_library() {
#if defined(_LIBCPP_VERSION)
    return "libc++ " + std::to_string(_LIBCPP_VERSION);
#elif defined(_GLIBCXX_RELEASE)
    return "libstdc++ " + std::to_string(_GLIBCXX_RELEASE);
#else
    return "unknown";
#endif
}

void write(json& out, const parameters& given) {
    out.open_object();
    for (const auto& [name, value] : given.all()) out.field(name, value);
    out.close_object();
}

void write(json& out, const column& figure) {
    out.open_object()
        .field("metric", figure.metric)
        .field("statistic", figure.statistic)
        .field("label", figure.label)
        .field("unit", figure.unit)
        .field("judged", figure.judged)
        .close_object();
}

void write(json& out, const contestant_info& contestant) {
    out.open_object()
        .field("name", contestant.name)
        .field("label", contestant.label)
        .field("role", name_of(contestant.role))
        .field("about", contestant.about)
        .field("limits", contestant.limits)
        .field("tier", name_of(contestant.included_from))
        .close_object();
}

void write(json& out, const registered_scenario& scenario) {
    const scenario_info& info = *scenario.info;
    out.open_object()
        .field("name", info.name)
        .field("question", info.question)
        .field("method", info.method)
        .field("floor", info.floor);
    out.key("columns").open_array();
    for (const column& figure : info.columns) {
        const bool about_switches = figure.metric == "switches" || figure.metric == "disturbed";
        if (counts_switches || !about_switches) write(out, figure);
    }
    out.close_array();
    out.key("cases").open_array();
    for (const scenario_case& one : info.cases) {
        out.open_object().key("parameters");
        write(out, one.given);
        out.field("tier", name_of(one.tier)).key("refusals").open_object();
        for (const pairing& pair : scenario.pairings) {
            if (std::string why = pair.refuses(one.given); !why.empty())
                out.field(pair.contestant->name, why);
        }
        out.close_object().close_object();
    }
    out.close_array().close_object();
}

void write(json& out, const histogram& values) {
    out.open_object()
        .field("unit", "ps")
        .field("sub_bits", histogram::sub_bits)
        .field("total", values.total())
        .field("least", values.least())
        .field("most", values.most())
        .field("sum", values.sum());
    out.key("counts").open_array();
    values.for_each([&](std::size_t index, std::uint64_t count) {
        out.open_array().value(index).value(count).close_array();
    });
    out.close_array().close_object();
}

void write_texts(json& out, std::string_view name, const std::vector<std::string>& texts) {
    out.key(name).open_array();
    for (const std::string& text : texts) out.value(std::string_view(text));
    out.close_array();
}

}  // namespace

std::string_view name_of(role which) {
    switch (which) {
        case role::floor: return "floor";
        case role::ours: return "ours";
        case role::variant: return "variant";
        case role::peer: return "peer";
        case role::reference: return "reference";
        case role::rejected: return "rejected";
    }
    return "";
}

std::string_view name_of(tier which) {
    switch (which) {
        case tier::quick: return "quick";
        case tier::standard: return "standard";
        case tier::full: return "full";
    }
    return "";
}

std::string describe(const registry& all) {
    json out;
    out.open_object().field("protocol", protocol_version);
    out.key("build")
        .open_object()
        .field("compiler", compiler())
        .field("flags", LAB_FLAGS)
        .field("standard_library", standard_library())
        .close_object();
    out.key("contestants").open_array();
    for (const contestant_info* contestant : all.contestants_known()) write(out, *contestant);
    out.close_array();
    out.key("scenarios").open_array();
    for (const registered_scenario& scenario : all.scenarios()) write(out, scenario);
    out.close_array().close_object();
    return out.text();
}

std::string report(const registered_scenario& scenario, const contestant_info& contestant, const context& run,
                   double budget_seconds) {
    json out;
    out.open_object()
        .field("protocol", protocol_version)
        .field("scenario", scenario.info->name)
        .field("contestant", contestant.name);
    out.key("parameters");
    write(out, run.given);
    out.field("seed", run.seed)
        .field("budget_ms", budget_seconds * 1e3)
        .field("ok", run.failures().empty())
        .field("operations", run.operations());
    out.key("values").open_object();
    for (const auto& [name, value] : run.values()) out.field(name, value);
    out.close_object();
    out.key("distributions").open_object();
    for (const auto& [name, values] : run.distributions()) {
        out.key(name);
        write(out, values);
    }
    out.close_object();
    write_texts(out, "notes", run.notes());
    write_texts(out, "failures", run.failures());
    out.close_object();
    return out.text();
}

}  // namespace lab
