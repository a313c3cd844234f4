// SPDX-License-Identifier: GPL-2.0-only
// Intrusive lists.
#pragma once

#include <cstddef>

namespace kd
{

template <class T>
struct Link {
	T *next = nullptr;
};

// Singly linked, first in, first out.
template <class T, Link<T> T::*Where>
class Fifo
{
public:
	bool empty() const { return !head_; }
	T *front() const { return head_; }
	void push_back(T *item)
	{
		(item->*Where).next = nullptr;
		if (tail_)
			(tail_->*Where).next = item;
		else
			head_ = item;
		tail_ = item;
	}
	void push_front(T *item)
	{
		(item->*Where).next = head_;
		head_ = item;
		if (!tail_)
			tail_ = item;
	}
	T *pop()
	{
		T *item = head_;
		if (item)
			head_ = (item->*Where).next;
		if (!head_)
			tail_ = nullptr;
		return item;
	}
	// Takes out the first item that `match` accepts.
	template <class Match>
	T *take(const Match &match)
	{
		for (T *prev = nullptr, *item = head_; item;
		     prev = item, item = (item->*Where).next) {
			if (!match(*item))
				continue;
			T *next = (item->*Where).next;
			(prev ? (prev->*Where).next : head_) = next;
			if (!next)
				tail_ = prev;
			return item;
		}
		return nullptr;
	}
	template <class Visit>
	void each(const Visit &visit) const
	{
		for (T *item = head_; item;) {
			T *next = (item->*Where).next;
			visit(*item);
			item = next;
		}
	}

private:
	T *head_ = nullptr;
	T *tail_ = nullptr;
};

template <class T>
struct Links {
	T *next = nullptr, *prev = nullptr;
};

// Doubly linked, in no order: an item is taken out wherever it is.
template <class T, Links<T> T::*Where>
class Bag
{
public:
	void add(T *item)
	{
		(item->*Where) = {head_, nullptr};
		if (head_)
			(head_->*Where).prev = item;
		head_ = item;
	}
	void remove(T *item)
	{
		Links<T> &links = item->*Where;
		(links.prev ? (links.prev->*Where).next : head_) = links.next;
		if (links.next)
			(links.next->*Where).prev = links.prev;
		links = {};
	}
	T *front() const { return head_; } // any; nullptr: there is none
	template <class Visit>
	void each(const Visit &visit) const
	{
		for (T *item = head_; item; item = (item->*Where).next)
			visit(*item);
	}

private:
	T *head_ = nullptr;
};

// Doubly linked, in the order of adding: an item is taken out wherever it is.
template <class T, Links<T> T::*Where>
class Row
{
public:
	T *front() const { return head_; }
	void push_back(T *item)
	{
		(item->*Where) = {nullptr, tail_};
		(tail_ ? (tail_->*Where).next : head_) = item;
		tail_ = item;
	}
	void remove(T *item)
	{
		Links<T> &links = item->*Where;
		(links.prev ? (links.prev->*Where).next : head_) = links.next;
		(links.next ? (links.next->*Where).prev : tail_) = links.prev;
		links = {};
	}

private:
	T *head_ = nullptr;
	T *tail_ = nullptr;
};

} // namespace kd
