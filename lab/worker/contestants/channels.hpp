// SPDX-License-Identifier: Apache-2.0
// Bounded queues of numbers, with sends and receives that wait; and receives from any of several queues.
#pragma once

#include "../contestant.hpp"

#include <tocsin/channel.hpp>
#include <tocsin/wait.hpp>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace lab {

class tocsin_item_channel {
public:
    static constexpr bool can_rendezvous = true;
    explicit tocsin_item_channel(std::size_t capacity) : items_(capacity) {}
    void send(std::uint64_t item) { items_.send(item); }
    std::uint64_t receive() { return *items_.receive(); }

private:
    tocsin::channel<std::uint64_t> items_;
};

template <class Indices>
class tocsin_channels;

// A wait_any() over the receives, which are made once.
template <std::size_t... Is>
class tocsin_channels<std::index_sequence<Is...>> {
public:
    explicit tocsin_channels(std::size_t capacity) : channels_{((void)Is, channel(capacity))...} {}
    void send(std::size_t which, std::uint64_t item) { channels_[which].send(item); }
    std::uint64_t receive_any() { return *next_[tocsin::wait_any(next_[Is]...).index]; }

private:
    using channel = tocsin::channel<std::uint64_t>;

    std::array<channel, sizeof...(Is)> channels_;
    std::array<tocsin::receive_transfer<std::uint64_t>, sizeof...(Is)> next_{channels_[Is].receiving()...};
};

using tocsin_channel_group = tocsin_channels<std::make_index_sequence<channels_in_group>>;

// What a receive costs that needs no choice: all items go through one channel.
struct tocsin_one_channel {
    static constexpr contestant_info info{
        .name = "tocsin_one_channel",
        .label = "tocsin, one channel",
        .role = role::variant,
        .about = "receive() of one tocsin::channel, which has the capacity of the eight",
        .limits = "chooses between no channels",
        .no_manual_event = "is a queue",
        .no_auto_event = "is a queue",
        .no_lock = "is a queue",
        .no_address_wait = "is a queue",
    };

    class channel_group {
    public:
        explicit channel_group(std::size_t capacity) : items_(capacity * channels_in_group) {}
        void send(std::size_t, std::uint64_t item) { items_.send(item); }
        std::uint64_t receive_any() { return *items_.receive(); }

    private:
        tocsin::channel<std::uint64_t> items_;
    };
};

// A ring under one mutex, with a condition variable for each side: what one writes by hand.
struct std_cond_queue {
    static constexpr contestant_info info{
        .name = "std_cond_queue",
        .label = "mutex + two std cond",
        .role = role::peer,
        .about =
            "a ring under a std::mutex, and a std::condition_variable for each side; notifies after "
            "unlocking",
        .no_manual_event = "is a queue",
        .no_auto_event = "is a queue",
        .no_lock = "is a queue",
        .no_address_wait = "is a queue",
    };

    class item_channel {
    public:
        explicit item_channel(std::size_t capacity) : slots_(capacity) {}
        void send(std::uint64_t item) {
            {
                std::unique_lock held(mutex_);
                room_.wait(held, [&] { return sent_ - received_ != slots_.size(); });
                slots_[sent_++ % slots_.size()] = item;
            }
            items_.notify_one();
        }
        std::uint64_t receive() {
            std::uint64_t item;
            {
                std::unique_lock held(mutex_);
                items_.wait(held, [&] { return sent_ != received_; });
                item = slots_[received_++ % slots_.size()];
            }
            room_.notify_one();
            return item;
        }

    private:
        std::mutex mutex_;
        std::condition_variable items_, room_;
        std::vector<std::uint64_t> slots_;
        std::size_t sent_ = 0, received_ = 0;
    };
};

// What one writes by hand where one thread receives from several queues.
struct std_cond_queues {
    static constexpr contestant_info info{
        .name = "std_cond_queues",
        .label = "queues + std cond",
        .role = role::peer,
        .about =
            "rings under one std::mutex, with one std::condition_variable for the receiver and one for the "
            "senders of each ring; notifies after unlocking",
        .limits = "all queues share a lock",
        .no_manual_event = "is a way to receive from several queues",
        .no_auto_event = "is a way to receive from several queues",
        .no_lock = "is a way to receive from several queues",
        .no_address_wait = "is a way to receive from several queues",
    };

    class channel_group {
    public:
        explicit channel_group(std::size_t capacity) {
            for (ring& each : rings_) each.slots.resize(capacity);
        }
        void send(std::size_t which, std::uint64_t item) {
            ring& to = rings_[which];
            {
                std::unique_lock held(mutex_);
                to.room.wait(held, [&] { return to.sent - to.received != to.slots.size(); });
                to.slots[to.sent++ % to.slots.size()] = item;
            }
            items_.notify_one();
        }
        std::uint64_t receive_any() {
            std::unique_lock held(mutex_);
            for (;; items_.wait(held)) {
                for (ring& from : rings_) {
                    if (from.sent == from.received) continue;
                    const std::uint64_t item = from.slots[from.received++ % from.slots.size()];
                    held.unlock();
                    from.room.notify_one();
                    return item;
                }
            }
        }

    private:
        struct ring {
            std::condition_variable room;
            std::vector<std::uint64_t> slots;
            std::size_t sent = 0, received = 0;
        };

        std::mutex mutex_;
        std::condition_variable items_;
        std::array<ring, channels_in_group> rings_;
    };
};

}  // namespace lab
