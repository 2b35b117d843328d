// Cheap memory for objects that come and go with every operator: a list of free blocks a thread.
#pragma once
#include <cstddef>
#include <new>

namespace fl {

namespace detail {

/// Blocks of one size. They move to the system allocator when the thread ends.
struct FreeList {
  struct Block {
    Block* next;
  };
  static constexpr int kCapacity = 256;

  Block* head = nullptr;
  int count = 0;
  bool closed = false;  // The thread is ending: nothing is kept any more.

  ~FreeList() {
    closed = true;
    while (head) {
      Block* next = head->next;
      ::operator delete(head);
      head = next;
    }
    count = 0;
  }
};

}  // namespace detail

/// Base of a class T that gives it an operator new from a free list. Derived classes of another size use the
/// system allocator.
template <class T>
class FreeListed {
 public:
  static void* operator new(size_t size) {
    detail::FreeList& list = free_list();
    if (size != sizeof(T) || !list.head) return ::operator new(size);
    detail::FreeList::Block* block = list.head;
    list.head = block->next;
    --list.count;
    return block;
  }
  static void operator delete(void* data, size_t size) {
    detail::FreeList& list = free_list();
    if (size != sizeof(T) || list.closed || list.count == detail::FreeList::kCapacity) {
      ::operator delete(data);
      return;
    }
    auto* block = static_cast<detail::FreeList::Block*>(data);
    block->next = list.head;
    list.head = block;
    ++list.count;
  }

 private:
  static detail::FreeList& free_list() {
    thread_local detail::FreeList list;
    return list;
  }
};

}  // namespace fl
