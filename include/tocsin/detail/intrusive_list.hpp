// SPDX-License-Identifier: Apache-2.0
// A doubly linked list whose links are in its nodes. The list owns nothing, allocates nothing and locks nothing. The
// thread that uses a list holds the lock that guards it, and the models check this (`plain` in atomic.hpp).
//
//     struct job : list_links<job> { ... };
//     intrusive_list<job> jobs;
//     jobs.append(one);
//     while (job* const oldest = jobs.take_first()) run(*oldest);
//
// A node is in at most one list at a time, but does not record whether it is in one. So a whole list changes hands in
// one step, without a visit to its nodes. An owner that must know whether a node is in a list keeps a flag of its own.
//
// Invariants
//   intrusive_list-1  first() and last() are both null, or neither is.
//   intrusive_list-2  The first node has no previous node, and the last node has no next one. Of any two neighbours,
//       the first links to the second and the second links back.
//   intrusive_list-3  The links of a node that is in no list mean nothing, except that remove() and take_first() leave
//       next() null.
//
// Checked by: tests/internal/intrusive_list_test.cpp, tests/model/intrusive_list_model_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>

namespace tocsin::detail {

template <class T>
class intrusive_list;

template <class T>
class list_links {
    friend class intrusive_list<T>;
    plain<T*> next_{nullptr};
    plain<T*> previous_{nullptr};
};

template <class T>
class intrusive_list {
public:
    constexpr intrusive_list() noexcept = default;
    // Makes a list of the nodes from `first` to `last`, which are linked already.
    intrusive_list(T* first, T* last) noexcept : first_(first), last_(last) {}
    intrusive_list(intrusive_list&& from) noexcept : first_(from.first_), last_(from.last_) { from.clear(); }
    intrusive_list& operator=(intrusive_list&& from) noexcept {
        T* const first = from.first_;
        T* const last = from.last_;
        from.clear();
        first_ = first;
        last_ = last;
        return *this;
    }

    bool empty() const noexcept { return first_ == nullptr; }
    T* first() const noexcept { return first_; }
    T* last() const noexcept { return last_; }
    static T* next(const T& node) noexcept { return links(node).next_; }
    static T* previous(const T& node) noexcept { return links(node).previous_; }

    void append(T& node) noexcept {
        links(node).next_ = nullptr;
        links(node).previous_ = last_;
        next_of(last_) = &node;
        last_ = &node;
    }

    // Inserts the node behind `before`, or at the front if `before` is null.
    void insert_after(T* before, T& node) noexcept {
        T* const after = next_of(before);
        links(node).next_ = after;
        links(node).previous_ = before;
        next_of(before) = &node;
        previous_of(after) = &node;
    }

    // Moves all nodes of `more`, in their order, behind `before`, or to the front if `before` is null.
    void insert_after(T* before, intrusive_list&& more) noexcept {
        if (more.empty()) return;
        T* const after = next_of(before);
        links(*more.last_).next_ = after;
        links(*more.first_).previous_ = before;
        next_of(before) = more.first_;
        previous_of(after) = more.last_;
        more.clear();
    }

    void remove(T& node) noexcept {
        T* const before = links(node).previous_;
        T* const after = links(node).next_;
        next_of(before) = after;
        previous_of(after) = before;
        links(node).next_ = nullptr;
    }

    // Takes out `first` and all nodes behind it, and returns them as a list.
    intrusive_list take_from(T& first) noexcept {
        intrusive_list all(&first, last_);
        T* const before = links(first).previous_;
        next_of(before) = nullptr;
        last_ = before;
        links(first).previous_ = nullptr;
        return all;
    }

    T* take_first() noexcept {
        T* const oldest = first_;
        if (oldest != nullptr) remove(*oldest);
        return oldest;
    }

private:
    static list_links<T>& links(T& node) noexcept { return node; }
    static const list_links<T>& links(const T& node) noexcept { return node; }

    // The link from a node to the next one, and the link to the previous one. A null `node` means the list itself,
    // which comes before its first node and after its last.
    plain<T*>& next_of(T* node) noexcept { return node != nullptr ? links(*node).next_ : first_; }
    plain<T*>& previous_of(T* node) noexcept { return node != nullptr ? links(*node).previous_ : last_; }

    void clear() noexcept {
        first_ = nullptr;
        last_ = nullptr;
    }

    plain<T*> first_{nullptr};
    plain<T*> last_{nullptr};
};

}  // namespace tocsin::detail
