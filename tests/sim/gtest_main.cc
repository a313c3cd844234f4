// SPDX-License-Identifier: GPL-2.0-only
// What a World finds wrong fails the test that it belongs to.
#include <gtest/gtest.h>

#include "report.h"

int main(int argc, char **argv)
{
	sim::set_reporter([](const std::string &text) { ADD_FAILURE() << text; });
	testing::InitGoogleTest(&argc, argv);
	return RUN_ALL_TESTS();
}
