// SPDX-License-Identifier: GPL-2.0-only
//
// Fixed buffers and batches: a file goes into a mapping, or comes out of it.
//
//	copy to MAPPING FILE
//	copy from MAPPING FILE [LENGTH]		default: all of the mapping
#include <libkdirect.hh>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string_view>
#include <vector>

namespace
{

constexpr size_t chunk = 256 << 10;
constexpr size_t slots = 8;

class Copy
{
public:
	Copy(kdirect::Mapping &mapping, std::FILE *file, bool to)
		: mapping_(mapping), file_(file), to_(to)
	{
		for (uint16_t slot = 0; slot < slots; slot++)
			idle_.push_back(slot);
	}

	// Until `length` bytes, or the end of the file; returns how many.
	uint64_t run(uint64_t length)
	{
		uint64_t at = 0;
		bool more = true;
		while (more || idle_.size() < slots) {
			while (more && !idle_.empty()) {
				uint64_t got = start(at, std::min<uint64_t>(chunk, length - at));
				at += got;
				more = got && at < length;
			}
			finish();
		}
		return at;
	}

private:
	std::span<std::byte> memory(uint16_t slot)
	{
		return std::span(memory_).subspan(slot * chunk, chunk);
	}

	// Begins one transfer; 0 at the end of the file.
	uint64_t start(uint64_t at, uint64_t length)
	{
		uint16_t slot = idle_.back();
		if (to_)
			length = std::fread(memory(slot).data(), 1, length, file_);
		if (!length)
			return 0;
		kdirect_desc *desc = batch_.next();
		if (to_)
			kdirect_prep_write_fixed(desc, buffer_.index(), slot * chunk,
						 uint32_t(length), at, slot);
		else
			kdirect_prep_read_fixed(desc, buffer_.index(), slot * chunk,
						uint32_t(length), at, slot);
		under_way_[slot] = *desc;
		idle_.pop_back();
		return length;
	}

	// Submits what was begun, and takes at least one completion, if there is one to come.
	void finish()
	{
		std::array<kdirect_completion, slots> done;
		uint32_t min = idle_.size() < slots ? 1 : 0;
		size_t count = batch_.submit(mapping_, done, min);
		for (const kdirect_completion &c : std::span(done).first(count)) {
			auto slot = uint16_t(c.user_data);
			const kdirect_desc &desc = under_way_[slot];
			if (c.result < 0)
				throw std::runtime_error(kdirect::explain(desc, c));
			if (!to_ && (std::fseek(file_, long(desc.remote), SEEK_SET) ||
				     std::fwrite(memory(slot).data(), 1, desc.length, file_) !=
					     desc.length))
				throw std::system_error(errno, std::generic_category());
			idle_.push_back(slot);
		}
	}

	kdirect::Mapping &mapping_;
	std::FILE *file_;
	bool to_;
	std::vector<std::byte> memory_ = std::vector<std::byte>(slots * chunk);
	kdirect::Buffer buffer_{mapping_, 0, memory_};
	kdirect::Batch batch_{slots};
	std::vector<uint16_t> idle_;
	std::array<kdirect_desc, slots> under_way_{};
};

} // namespace

int main(int argc, char **argv)
{
	std::string_view way = argc > 1 ? argv[1] : "";
	bool to = way == "to";
	if (argc < 4 || argc > 5 || (!to && way != "from") || (to && argc > 4)) {
		std::cerr << "usage: copy to MAPPING FILE | copy from MAPPING FILE [LENGTH]\n";
		return 2;
	}
	std::FILE *file = std::fopen(argv[3], to ? "r" : "w");
	if (!file) {
		std::cerr << "copy: " << argv[3] << ": " << std::strerror(errno) << '\n';
		return 1;
	}
	int status = 0;
	try {
		kdirect::Mapping mapping(argv[2], to ? O_WRONLY : O_RDONLY);
		uint64_t length = argc > 4 ? std::stoull(argv[4]) : mapping.info().size;
		if (to)
			length = UINT64_MAX; // what is too long fails
		std::cout << Copy(mapping, file, to).run(length) << " bytes\n";
	} catch (const std::exception &e) {
		std::cerr << "copy: " << argv[2] << ": " << e.what() << '\n';
		status = 1;
	}
	if (std::fclose(file) && !status) {
		std::cerr << "copy: " << argv[3] << ": " << std::strerror(errno) << '\n';
		status = 1;
	}
	return status;
}
