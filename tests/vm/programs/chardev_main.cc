// SPDX-License-Identifier: GPL-2.0-only
// chardev_test NODE-A NODE-B [GoogleTest's options]
#include "chardev.h"

const char *node_a, *node_b;

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	if (argc != 3)
		die("usage: chardev_test NODE-A NODE-B [--gtest_filter=...]");
	node_a = argv[1];
	node_b = argv[2];
	return RUN_ALL_TESTS();
}
