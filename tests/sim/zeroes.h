/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes that are zero, of which no page is there before somebody uses it. */
#pragma once
#include <cstdlib>
#include <memory>
#include <new>

namespace sim
{

class Zeroes
{
public:
	Zeroes() = default;
	explicit Zeroes(std::size_t size)
		: bytes(static_cast<char *>(std::calloc(1, size ? size : 1))), length(size)
	{
		if (!bytes)
			throw std::bad_alloc();
	}
	char *data() const { return bytes.get(); }
	std::size_t size() const { return length; }
	char *begin() const { return data(); }
	char *end() const { return data() + length; }
	char &operator[](std::size_t at) const { return data()[at]; }

private:
	struct Free {
		void operator()(char *mem) const { std::free(mem); }
	};
	std::unique_ptr<char[], Free> bytes;
	std::size_t length = 0;
};

} // namespace sim
