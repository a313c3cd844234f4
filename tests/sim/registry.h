/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated kernel objects of one kind that exist now, in order of creation:
 * nothing that decides the schedule may depend on an address.
 */
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "report.h"

namespace sim
{

template <typename T>
class Registry
{
public:
	explicit Registry(const char *kind) : kind(kind) {}

	template <typename... Args>
	T *add(Args &&...args)
	{
		objects.push_back(std::make_unique<T>(std::forward<Args>(args)...));
		objects.back()->id = next_id++;
		return objects.back().get();
	}
	/* nullptr: it is gone */
	T *find(uint64_t id) const
	{
		auto it = std::lower_bound(
			objects.begin(), objects.end(), id,
			[](const auto &obj, uint64_t value) { return obj->id < value; });
		return it != objects.end() && (*it)->id == id ? it->get() : nullptr;
	}
	/* What the core handed in: must exist. */
	T *check(const void *handle, const char *who) const
	{
		for (const auto &obj : objects)
			if (obj.get() == handle)
				return obj.get();
		die("%s: %s %p does not exist (any more)", who, kind, handle);
	}
	void remove(T *object)
	{
		std::erase_if(objects, [&](const auto &obj) { return obj.get() == object; });
	}
	T *at(std::size_t index) const { return objects.at(index).get(); }
	auto begin() const { return objects.begin(); }
	auto end() const { return objects.end(); }
	std::size_t size() const { return objects.size(); }
	const char *name() const { return kind; }

private:
	const char *kind;
	uint64_t next_id = 1;
	std::vector<std::unique_ptr<T>> objects;
};

} // namespace sim
