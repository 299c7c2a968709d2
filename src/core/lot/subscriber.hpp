// Who is asked, under a bucket's lock, when the turn of a node of theirs comes (lot.hpp). The arguments: multi_wait.cpp,
// ready_list.cpp and pollable.cpp.
#pragma once

#include <cstdint>

namespace tocsin::core {

struct wait_node;
class release_list;

// Who keeps its place in a queue when its turn comes, and is asked instead of claimed: a wait for all of several
// sources (multi_wait.hpp), a member of a set (ready_list.hpp), a view for someone else's loop.
class subscriber {
public:
    enum class reply : std::uint8_t {
        declined,   // it is for the next
        accepted,   // only what is offered to one alone
        undecided,  // commit() decides: to be called once, soon, under no lock; until then the chooser exists
    };

    // What `place` waits for has come: for one alone, who takes it away, or for everybody. Under the bucket's lock.
    // Whoever is to be released on account of it is appended to `freed`.
    virtual reply on_wake(wait_node& place, bool exclusive, release_list& freed) noexcept = 0;
    // Whether it takes what it said `perhaps` to; `in_hand` if that was offered to it alone, else null.
    virtual bool commit(const wait_node* offered) noexcept = 0;
    // Releases a node of its own that has no owner.
    virtual void ring() noexcept = 0;

    // One that looks at several sources; it is asked once more when one of them is ready for all to see.
    const bool waits_for_all;

protected:
    explicit subscriber(bool for_all) noexcept : waits_for_all(for_all) {}
    ~subscriber() = default;
};

}  // namespace tocsin::core
