// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over channels. No item is lost or doubled, and no wake-up is lost. Of the
// transfers in one wait, exactly one happens, even if two such waits meet. Nothing is touched that is gone. Proof P20
// in docs/proofs.md.
#include "../support/task.hpp"
#include "support/library_model.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

// A number that only one thread at a time may touch, so that the explorer sees races on items and slots.
class parcel {
public:
    explicit parcel(int number) : number_(number) {}
    parcel(parcel&& from) noexcept : number_(from.number_.get()) { from.number_ = 0; }
    parcel& operator=(parcel&& from) noexcept {
        number_ = from.number_.get();
        from.number_ = 0;
        return *this;
    }

    int number() const { return number_.get(); }

private:
    plain<int> number_;
};

using parcels = channel<parcel>;

// The waits of these programs name no spin policy, and neither do the channel's locks.
class channel_model : public testing::Test {
    void SetUp() override { set_spin_policy(spin_policy::none()); }
    void TearDown() override { set_spin_policy({}); }
};

int number_in(received<parcel> what) { return what ? what->number() : 0; }
bool sent(channel_status how) { return how == channel_status::done; }

MODEL_TEST_F(channel_model, ItemsArriveInOrderThroughOneSlot, holds_within, 2) {
    parcels through(1);
    plain<int> data{0};
    r.spawn("sender", [&] {
        data = 42;
        model::check(sent(through.send(parcel(1))), "sent");
        model::check(sent(through.send(parcel(2))), "sent");
    });
    r.spawn("receiver", [&] {
        model::check(number_in(through.receive()) == 1, "the first item comes first");
        model::check(data == 42, "what the sender wrote is visible");
        model::check(number_in(through.receive()) == 2, "the second item comes second");
    });
    r.join_all();
    r.check(through.size() == 0, "nothing is left");
}

MODEL_TEST_F(channel_model, TriesPassItemsOn, holds_always) {
    parcels through(1);
    int accepted = 0;
    int received = 0;
    r.spawn("sender", [&] {
        for (int i = 1; i != 3; ++i) accepted += sent(through.try_send(parcel(1))) ? 1 : 0;
    });
    r.spawn("receiver", [&] {
        for (int i = 1; i != 3; ++i) received += number_in(through.try_receive());
    });
    r.join_all();
    r.check(accepted >= 1 && accepted == received + static_cast<int>(through.size()),
            "none lost, none doubled");
}

MODEL_TEST_F(channel_model, TheSizeIsNeverNegative, holds_always) {
    parcels through(2);
    r.spawn("sender", [&] { model::check(sent(through.try_send(parcel(1))), "sent"); });
    r.spawn("receiver", [&] { (void)through.try_receive(); });
    r.spawn("looker", [&] { model::check(through.size() <= 1, "there is one item at most"); });
    r.join_all();
}

// A wait that may not sleep looks only once. If there is something to find at every moment, that one look must find it.
MODEL_TEST_F(channel_model, ALookFindsAnItemThatIsAlwaysThere, holds_always) {
    parcels through(2);
    (void)through.try_send(parcel(1));
    r.spawn("mover", [&] {
        model::check(sent(through.try_send(parcel(2))), "sent");
        (void)through.try_receive();
    });
    r.spawn("looker", [&] {
        auto next = through.receiving();
        const auto how = wait_any({.until = std::chrono::nanoseconds(0)}, next).status;
        model::check(how == wait_status::signaled, "found");
    });
    r.join_all();
}

MODEL_TEST_F(channel_model, ALookFindsRoomThatIsAlwaysThere, holds_always) {
    parcels through(2);
    (void)through.try_send(parcel(1));
    r.spawn("mover", [&] {
        model::check(number_in(through.try_receive()) != 0, "received");
        (void)through.try_send(parcel(2));
    });
    r.spawn("looker", [&] {
        parcel item(3);
        auto next = through.sending(item);
        const auto how = wait_any({.until = std::chrono::nanoseconds(0)}, next).status;
        model::check(how == wait_status::signaled, "found");
    });
    r.join_all();
}

MODEL_TEST_F(channel_model, TwoSendersAndTwoReceiversThroughOneSlot, holds_within, 0) {
    parcels through(1);
    int sum[2]{};
    for (const int i : {0, 1}) r.spawn("sender", [&, i] { (void)through.send(parcel(1 + i)); });
    for (const int i : {0, 1}) r.spawn("receiver", [&, i] { sum[i] = number_in(through.receive()); });
    r.join_all();
    r.check(sum[0] + sum[1] == 3 && sum[0] != 0 && sum[1] != 0, "each item once");
}

// A sender sleeps in front of a full ring; the receive that makes room takes its item along.
MODEL_TEST_F(channel_model, AReceiveMakesRoomForAWaitingSender, holds_within, 2) {
    parcels through(1);
    (void)through.try_send(parcel(1));
    int rest = 0;
    r.spawn("sender", [&] { (void)through.send(parcel(2)); });
    r.spawn("receiver", [&] {
        model::check(number_in(through.receive()) == 1, "the oldest comes first");
        rest = number_in(through.receive());
    });
    r.join_all();
    r.check(rest == 2, "then the sender's");
}

MODEL_TEST_F(channel_model, OneReceiveIsEnoughForASenderBehindAFullRing, holds_within, 1) {
    parcels through(1);
    (void)through.try_send(parcel(1));
    r.spawn("sender", [&] { (void)through.send(parcel(2)); });
    r.spawn("receiver", [&] { (void)through.receive(); });
    r.join_all();
    r.check(through.size() == 1 && number_in(through.try_receive()) == 2, "the sender's item is in the slot");
}

MODEL_TEST_F(channel_model, ARendezvousPublishesBothWays, holds_within, 2) {
    parcels meeting(0);
    plain<int> by_sender{0};
    plain<int> by_receiver{0};
    r.spawn("sender", [&] {
        by_sender = 1;
        model::check(sent(meeting.send(parcel(7))), "sent");
        model::check(by_receiver == 1, "what the receiver did before is visible");
    });
    r.spawn("receiver", [&] {
        by_receiver = 1;
        model::check(number_in(meeting.receive()) == 7, "received");
        model::check(by_sender == 1, "what the sender did before is visible");
    });
    r.join_all();
}

// Whether or not the deadlines pass, both sides agree.
void times_out_exactly(std::size_t capacity) {
    holds_within(1, [=](run& r) {
        parcels through(capacity);
        parcel item(5);
        bool given = false;
        int taken = 0;
        r.spawn("sender", [&] { given = sent(through.send_until(std::move(item), some_time())); });
        r.spawn("receiver", [&] { taken = number_in(through.receive_until(some_time())); });
        r.join_all();
        const int left = through.size() == 0 ? 0 : number_in(through.try_receive());
        r.check(item.number() == (given ? 0 : 5), "an item that was not sent is still with its sender");
        r.check(taken + left == (given ? 5 : 0), "an item that was sent is received or left, once");
    });
}

TEST_F(channel_model, ATimeoutLosesNothing) { times_out_exactly(1); }
TEST_F(channel_model, ATimeoutLosesNothingAtARendezvous) { times_out_exactly(0); }

MODEL_TEST_F(channel_model, AStopLosesNothing, holds_within, 0) {
    parcels through(0);
    model::stop_source stop;
    int taken = 0;
    bool given = false;
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("receiver", [&] { taken = number_in(through.receive(stop.get_token())); });
    r.spawn("sender", [&] { given = sent(through.send_until(parcel(3), some_time())); });
    r.join_all();
    r.check(taken == (given ? 3 : 0), "the receiver has it, or the sender");
}

MODEL_TEST_F(channel_model, ClosingReleasesTheReceiversAndKeepsTheItems, holds_within, 1) {
    parcels through(1);
    plain<int> data{0};
    bool given = false;
    int taken = 0;
    r.spawn("sender", [&] { given = sent(through.send(parcel(9))); });
    r.spawn("closer", [&] {
        data = 1;
        model::check(through.close(), "only this call closes it");
    });
    r.spawn("receiver", [&] {
        received<parcel> item = through.receive();
        if (item) {
            taken = item->number();
            item = through.receive();
        }
        model::check(!item && item.status() == channel_status::closed, "then it says closed");
        model::check(data == 1, "what the closer did is visible");
    });
    r.join_all();
    r.check(taken == (given ? 9 : 0), "an item that was sent is received");
    r.check(!through.close() && through.is_closed(), "it stays closed");
}

MODEL_TEST_F(channel_model, ClosingReleasesTheSenders, holds_within, 2) {
    parcels through(1);
    (void)through.try_send(parcel(1));
    parcel item(2);
    bool given = false;
    r.spawn("sender", [&] { given = sent(through.send(std::move(item))); });
    r.spawn("closer", [&] { through.close(); });
    r.join_all();
    r.check(!given && item.number() == 2 && through.size() == 1, "the item stays with its sender");
}

MODEL_TEST_F(channel_model, WhoSeesItClosedSeesWhatTheCloserDid, holds_always) {
    parcels through(1);
    plain<int> data{0};
    r.spawn("closer", [&] {
        data = 1;
        through.close();
    });
    r.spawn("looker", [&] {
        if (through.is_closed()) model::check(data == 1, "visible");
    });
    r.join_all();
}

// ---- several sources ----------------------------------------------------------------------------

MODEL_TEST_F(channel_model, OneReceiveOfTwoHappens, holds_within, 1) {
    parcels a(0);
    parcels b(1);
    std::size_t index = 9;
    bool a_given = false;
    r.spawn("sender to a", [&] { a_given = sent(a.send_until(parcel(1), some_time())); });
    r.spawn("sender to b", [&] { (void)b.send(parcel(2)); });
    r.spawn("receiver", [&] {
        auto from_a = a.receiving();
        auto from_b = b.receiving();
        index = wait_any(from_a, from_b).index;
        model::check((index == 0 ? from_a : from_b)->number() == (index == 0 ? 1 : 2),
                     "the item that it names");
        model::check(!(index == 0 ? from_b : from_a), "and no other");
    });
    r.join_all();
    r.check(a_given == (index == 0) && (b.size() == 0) == (index == 1), "one item was taken");
}

MODEL_TEST_F(channel_model, AnEventOrAReceive, holds_within, 1) {
    parcels a(0);
    auto_reset_event event;
    std::size_t index = 9;
    bool given = false;
    r.spawn("sender", [&] { given = sent(a.send_until(parcel(1), some_time())); });
    r.spawn("setter", [&] { event.set(); });
    r.spawn("receiver", [&] {
        auto from_a = a.receiving();
        index = wait_any(event, from_a).index;
    });
    r.join_all();
    r.check(given == (index == 1) && event.is_set() == (index == 1), "one of the two");
}

// Each side of a rendezvous waits for something else as well.
MODEL_TEST_F(channel_model, TwoWaitsMeet, holds_within, 1) {
    parcels meeting(0);
    auto_reset_event other;
    std::size_t sender = 9;
    std::size_t receiver = 9;
    r.spawn("sender", [&] {
        parcel item(4);
        auto sending = meeting.sending(item);
        sender = wait_any({.until = some_time()}, sending, other).index;
        model::check((item.number() == 0) == (sender == 0), "moved from exactly if it was sent");
    });
    r.spawn("receiver", [&] {
        auto receiving = meeting.receiving();
        receiver = wait_any({.until = some_time()}, other, receiving).index;
        model::check(receiver != 1 || receiving->number() == 4, "the item");
    });
    r.join_all();
    r.check((sender == 0) == (receiver == 1), "both or none");
}

// Two waits that meet at two rendezvous channels, which they name in opposite orders: exactly one meeting.
MODEL_TEST_F(channel_model, TwoWaitsMeetAtOneOfTwoChannels, holds_within, 1) {
    parcels a(0);
    parcels b(0);
    std::size_t first = 9;
    std::size_t second = 9;
    r.spawn("first", [&] {
        parcel item(1);
        auto to_a = a.sending(item);
        auto from_b = b.receiving();
        first = wait_any(to_a, from_b).index;
        model::check((item.number() == 0) == (first == 0), "moved from exactly if it was sent");
        model::check(from_b ? first == 1 && from_b->number() == 2 : first == 0, "one of the two");
    });
    r.spawn("second", [&] {
        parcel item(2);
        auto to_b = b.sending(item);
        auto from_a = a.receiving();
        second = wait_any(to_b, from_a).index;
        model::check((item.number() == 0) == (second == 0), "moved from exactly if it was sent");
        model::check(from_a ? second == 1 && from_a->number() == 1 : second == 0, "one of the two");
    });
    r.join_all();
    r.check((first == 0) == (second == 1), "they met at the same channel");
}

// A wait that sends and receives at one rendezvous does not meet itself, only another thread.
MODEL_TEST_F(channel_model, AWaitDoesNotMeetItself, holds_within, 1) {
    parcels meeting(0);
    std::size_t index = 9;
    int got = 0;
    bool given = false;
    r.spawn("both", [&] {
        parcel item(1);
        auto sending = meeting.sending(item);
        auto receiving = meeting.receiving();
        index = wait_any({.until = some_time()}, sending, receiving, receiving).index;
        if (index == 1 || index == 2) model::check(receiving->number() == 2, "from the other thread");
    });
    r.spawn("other", [&] {
        got = number_in(meeting.receive_until(some_time()));
        if (got == 0) given = sent(meeting.try_send(parcel(2)));
    });
    r.join_all();
    r.check((got == 1) == (index == 0) && given == (index == 1 || index == 2),
            "with another thread or not at all");
}

// ---- coroutines and operations ------------------------------------------------------------------

// A coroutine receives until the sender has closed the channel, or until it is stopped.
MODEL_TEST_F(channel_model, ACoroutineReceivesUntilItIsStoppedOrFindsItClosed, holds_within, 1) {
    parcels meeting(0);
    model::stop_source stop;
    bool given = false;
    int taken = 0;
    int ended = 0;
    support::task one;
    r.spawn("sender", [&] {
        given = sent(meeting.send_until(parcel(7), some_time()));
        meeting.close();
    });
    r.spawn("stopper", [&] { stop.request_stop(); });
    r.spawn("coroutine", [&] {
        one = [](parcels& from, auto token, int& sum, int& count) -> support::task {
            for (;;) {
                auto next = from.receiving();
                const any_result how = co_await async_wait_any({.stop = token}, next);
                model::check(how.status == wait_status::signaled || !next, "stopped without an item");
                if (!next) break;
                sum += next->number();
            }
            ++count;
        }(meeting, stop.get_token(), taken, ended);
    });
    r.join_all();
    r.check(ended == 1, "resumed to its end");
    r.check(taken == (given ? 7 : 0), "the coroutine has it, or the sender");
}

// The sender may give up while the operation is about to meet it. Then the operation leaves the event's queue, and
// begins its wait again.
MODEL_TEST_F(channel_model, OfACancelAndASendOneEndsAnOperation, holds_within, 1) {
    parcels meeting(0);
    auto_reset_event never;
    auto next = meeting.receiving();
    plain<int> calls{0};
    plain<int> stops{0};
    plain<int> taken{0};
    bool given = false;
    int won = 0;
    auto wait = any_operation(
        [&](any_result how) noexcept {
            calls = calls + 1;
            stops = stops + (how.status == wait_status::stopped ? 1 : 0);
            model::check((how.status == wait_status::signaled) == static_cast<bool>(next),
                         "the result says whether it has received");
            if (next) taken = next->number();
        },
        never, next);
    r.spawn("sender", [&] { given = sent(meeting.send_until(parcel(4), some_time())); });
    r.spawn("canceler", [&] { won = wait.cancel() ? 1 : 0; });
    r.spawn("starter", [&] { wait.start(); });
    r.join_all();
    if (wait.cancel()) ++won;
    r.check(calls == 1 && stops == won, "called once, with what ended it");
    r.check(taken == (given ? 4 : 0), "the operation has it, or the sender");
}

// A source that never becomes ready. It starts the coroutine between the first look of a wait and the moment at which
// this wait enlists its next source. So the coroutine's transfer is enlisted when the wait comes to a rendezvous.
class starts_between {
public:
    explicit starts_between(std::function<void()> start) : start_(std::move(start)) {}

    static bool try_wait() noexcept { return false; }
    bool enlist(wait_entry&) noexcept {
        if (const auto start = std::exchange(start_, nullptr)) start();
        return true;
    }
    static void delist(wait_entry&) noexcept {}

private:
    std::function<void()> start_;
};

// A coroutine meets the first thread. The meeting resumes the coroutine in that thread, which is inside its own wait.
// There the coroutine meets the second thread, with the same transfer again. Its third wait ends without a meeting.
template <class Coroutine, class Partner>
void meets_again_where_it_is_resumed(Coroutine start, Partner partner) {
    holds_within(1, [=](run& r) {
        parcels meeting(0);
        auto_reset_event enough;
        plain<int> rounds{0};
        int sum[2]{};
        support::task one;
        r.spawn("first", [&] {
            starts_between starter([&] { one = start(meeting, enough, rounds); });
            sum[0] = partner(meeting, starter, 1);
        });
        r.spawn("second", [&] {
            auto_reset_event never;
            sum[1] = partner(meeting, never, 2);
        });
        r.join_all();
        r.check(rounds == 2 && sum[0] + sum[1] == 3, "one meeting with each");
        enough.set();
        r.check(rounds == 3, "resumed once more");
    });
}

TEST_F(channel_model, ACoroutineThatReceivesMeetsAgainWhereItIsResumed) {
    meets_again_where_it_is_resumed(
        [](parcels& at, auto_reset_event& enough, plain<int>& rounds) -> support::task {
            auto next = at.receiving();
            int received = 0;
            while ((co_await async_wait_any(enough, next)).index == 1) {
                model::check(static_cast<bool>(next), "received");
                received += next->number();
                rounds = rounds + 1;
            }
            model::check(received == 3, "each item once");
            rounds = rounds + 1;
        },
        [](parcels& at, auto& other, int number) {
            parcel item(number);
            auto sending = at.sending(item);
            model::check(wait_any(other, sending).index == 1 && item.number() == 0, "sent");
            return number;
        });
}

TEST_F(channel_model, ACoroutineThatSendsMeetsAgainWhereItIsResumed) {
    meets_again_where_it_is_resumed(
        [](parcels& at, auto_reset_event& enough, plain<int>& rounds) -> support::task {
            parcel item(1);
            auto next = at.sending(item);
            while ((co_await async_wait_any(enough, next)).index == 1) {
                model::check(item.number() == 0, "moved from");
                item = parcel(2);
                rounds = rounds + 1;
            }
            model::check(item.number() == 2, "not moved from");
            rounds = rounds + 1;
        },
        [](parcels& at, auto& other, int) {
            auto receiving = at.receiving();
            model::check(wait_any(other, receiving).index == 1 && receiving, "received");
            return receiving->number();
        });
}

// ---- lifetime -----------------------------------------------------------------------------------

void is_gone_after_the_last_item(std::size_t capacity) {
    holds_within(2, [=](run& r) {
        std::optional<parcels> one(std::in_place, capacity);
        r.spawn("sender", [&, to = &*one] { (void)to->send(parcel(1)); });
        r.spawn("receiver", [&] {
            model::check(number_in(one->receive()) == 1, "received");
            one.reset();
        });
        r.join_all();
    });
}

TEST_F(channel_model, WhoHasReceivedTheLastItemMayDestroyIt) { is_gone_after_the_last_item(1); }
TEST_F(channel_model, WhoHasReceivedTheLastItemMayDestroyARendezvous) { is_gone_after_the_last_item(0); }

// The item goes through a slot, without a wait.
MODEL_TEST_F(channel_model, WhoHasTakenTheLastItemMayDestroyIt, holds_always) {
    std::optional<parcels> one(std::in_place, 1);
    r.spawn("sender", [&, to = &*one] { (void)to->try_send(parcel(1)); });
    r.spawn("receiver", [&] {
        if (one->try_receive()) one.reset();
    });
    r.join_all();
}

MODEL_TEST_F(channel_model, WhoFindsItClosedMayDestroyIt, holds_within, 2) {
    std::optional<parcels> one(std::in_place, 1);
    r.spawn("closer", [&, to = &*one] { to->close(); });
    r.spawn("receiver", [&] {
        model::check(!one->receive(), "closed");
        one.reset();
    });
    r.join_all();
}

}  // namespace
