// SPDX-License-Identifier: GPL-2.0-only
#include "../../kmod/core/list.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "../sim/rng.h"

namespace
{

struct Item {
	int value = 0;
	kd::Link<Item> link;
};
using List = kd::Fifo<Item, &Item::link>;

TEST(Fifo, EmptyAndOne)
{
	List list;
	Item item;

	EXPECT_TRUE(list.empty());
	EXPECT_EQ(list.front(), nullptr);
	EXPECT_EQ(list.pop(), nullptr);
	list.push_back(&item);
	EXPECT_FALSE(list.empty());
	EXPECT_EQ(list.front(), &item);
	EXPECT_EQ(list.pop(), &item);
	EXPECT_TRUE(list.empty());
	list.push_front(&item);
	EXPECT_EQ(list.take([](Item &) { return true; }), &item);
	EXPECT_TRUE(list.empty());
	EXPECT_EQ(list.take([](Item &) { return true; }), nullptr);
}

/* Against a list that is known to be right. */
TEST(Fifo, AnyOperations)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		sim::Rng rng(seed);
		std::deque<Item> items(20);
		std::deque<Item *> spare, model;
		List list;

		for (int i = 0; i < 20; i++) {
			items[static_cast<std::size_t>(i)].value = i;
			spare.push_back(&items[static_cast<std::size_t>(i)]);
		}
		for (int step = 0; step < 500; step++) {
			uint64_t what = rng.below(4);

			if (what < 2 && !spare.empty()) {
				Item *item = spare.front();

				spare.pop_front();
				if (what == 0) {
					list.push_back(item);
					model.push_back(item);
				} else {
					list.push_front(item);
					model.push_front(item);
				}
			} else if (what == 2) {
				Item *item = list.pop();

				ASSERT_EQ(item, model.empty() ? nullptr : model.front());
				if (item) {
					model.pop_front();
					spare.push_back(item);
				}
			} else if (what == 3) {
				int wanted = static_cast<int>(rng.below(20));
				Item *item = list.take([&](Item &i) { return i.value == wanted; });
				auto found = std::find_if(model.begin(), model.end(), [&](Item *i) {
					return i->value == wanted;
				});

				ASSERT_EQ(item, found == model.end() ? nullptr : *found);
				if (item) {
					model.erase(found);
					spare.push_back(item);
				}
			}
			std::deque<Item *> seen;
			list.each([&](Item &item) { seen.push_back(&item); });
			ASSERT_TRUE(seen == model) << "seed " << seed << " step " << step;
			ASSERT_EQ(list.empty(), model.empty());
		}
	}
}

} // namespace
